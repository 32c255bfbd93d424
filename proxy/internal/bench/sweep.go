package main

import (
	"context"
	"errors"
	"fmt"
)

// sample is what one run came to.
type sample struct {
	figures
	tenths []figures // of the run; nil when they are not measured
}

// measure runs a scenario: its steps, in each of them the rounds, in each of those the programs in turn, so that what the
// machine does meanwhile meets all programs alike. A run that fails is printed and counted; an error ends the session.
func (s *session) measure(ctx context.Context, sc scenario) (outcome, error) {
	s.say("\n%s: %s", sc.name, sc.about)
	o := outcome{Name: sc.name, Machine: s.machine, Rounds: s.rounds}
	if sc.once {
		o.Rounds = 1
	}
	for _, st := range sc.steps {
		if err := s.preloadRecords(ctx, st.load.records); err != nil {
			return o, err
		}
		samples, failures, err := s.inTurn(ctx, sc, st, o.Rounds)
		if err != nil {
			return o, err
		}
		o.failures += failures
		o.Steps = append(o.Steps, summarize(sc, st, samples)...)
	}
	if err := s.forgetRecords(ctx); err != nil {
		return o, err
	}
	by := o.Steps[0].by()
	for _, b := range sc.bounds {
		o.Verdicts = append(o.Verdicts, b.judge(by))
	}
	printOutcome(s.out, sc, o)
	return o, nil
}

// inTurn runs a step's programs in turn, round by round.
func (s *session) inTurn(ctx context.Context, sc scenario, st step, rounds int) (samples map[program][]sample, failures int, err error) {
	samples = map[program][]sample{}
	for round := range rounds {
		for _, p := range sc.programs {
			result, err := s.run(ctx, p, st.load)
			if ctx.Err() != nil {
				return samples, failures, ctx.Err()
			}
			place := fmt.Sprintf("  %d %-10s %-8s", round+1, p, st.label)
			if err != nil {
				failures++
				s.failed++
				s.say("%s FAILED: %v", place, err)
				continue
			}
			s.say("%s %s", place, result.line(sc.columns))
			samples[p] = append(samples[p], result)
		}
	}
	return samples, failures, nil
}

// summarize makes the medians of a step, and after them, as steps of their own, the tenths of the last round.
func summarize(sc scenario, st step, samples map[program][]sample) []stepOutcome {
	whole := stepOutcome{Label: st.label}
	for _, p := range sc.programs {
		var runs []figures
		for _, one := range samples[p] {
			runs = append(runs, one.figures)
		}
		whole.Programs = append(whole.Programs, programOutcome{Program: p, Figures: medians(runs)})
	}
	all := []stepOutcome{whole}
	if runs := samples[programRabbitonce]; len(runs) > 0 {
		for i, tenth := range runs[len(runs)-1].tenths {
			all = append(all, stepOutcome{
				Label: percentText(10 * (i + 1)), Programs: []programOutcome{{Program: programRabbitonce, Figures: tenth}},
			})
		}
	}
	return all
}

// run does one run of the kind that the load asks for.
func (s *session) run(ctx context.Context, p program, l load) (result sample, err error) {
	r, err := s.prepare(p, l)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	switch {
	case l.idle > 0:
		err = r.idle(ctx)
	case l.rate > 0:
		err = r.latency(ctx)
	default:
		err = r.drain(ctx)
	}
	return sample{figures: r.figures, tenths: r.tenths}, err
}

// preloadRecords fills the store up to a number of records.
func (s *session) preloadRecords(ctx context.Context, n int) error {
	if n <= s.preload {
		return nil
	}
	s.say("  putting %s records into the store", thousands(float64(n-s.preload)))
	err := s.store.fill(ctx, s.prefix, s.preload, n)
	s.preload = n
	return err
}

// forgetRecords empties the store of what the session has put there, itself and by what it measured.
func (s *session) forgetRecords(ctx context.Context) error {
	s.preload = 0
	return s.store.forget(ctx, s.prefix)
}
