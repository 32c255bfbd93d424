package main

import "time"

// tenths takes down, while a run goes on, how fast each tenth of its messages went and how much memory was in use at its end.
type tenths struct {
	run   *run
	fleet *fleet
	since time.Time // when this tenth began
}

// look is called again and again.
func (t *tenths) look() error {
	done := len(t.run.tenths)
	if !t.run.load.tenths || done == 10 {
		return nil
	}
	posted := int(t.run.ledger.distinct.Load())
	if t.since.IsZero() && posted > 0 {
		t.since = t.run.ledger.firstPost()
	}
	if posted < t.run.load.messages/10*(done+1) {
		return nil
	}
	now := time.Now()
	size, err := t.fleet.memory(currentMemory)
	if err != nil {
		return err
	}
	tenth := figures{speed: float64(t.run.load.messages/10) / now.Sub(t.since).Seconds(), peak: size}
	t.run.tenths = append(t.run.tenths, tenth)
	t.run.session.say("  tenth %-2d %s", done+1, tenth.line([]measure{speed, peak}))
	t.since = now
	return nil
}

// compareHalves says how the second half of a run differs from the first. Without tenths it says nothing.
func (r *run) compareHalves() {
	if len(r.tenths) < 2 {
		return
	}
	half := len(r.tenths) / 2
	ratio := func(m measure) float64 {
		var values []float64
		for _, f := range r.tenths {
			values = append(values, f[m])
		}
		return mean(values[half:]) / mean(values[:half])
	}
	r.figures[speedKept], r.figures[memoryGrown] = ratio(speed), ratio(peak)
}
