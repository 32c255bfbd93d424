package check

import "time"

// trouble is what was done to a run. Its spans all have an end.
type trouble struct {
	processes []Process
	byName    map[string]int
	store     []Fault
	service   []Fault
}

func newTrouble(h *History) *trouble {
	t := &trouble{byName: map[string]int{}}
	for i, p := range h.Processes {
		stops := make([]Span, len(p.Stops))
		for j, stop := range p.Stops {
			stops[j] = closed(stop, h.End)
		}
		p.Stops = stops
		t.processes = append(t.processes, p)
		t.byName[p.Name] = i
	}
	for _, f := range h.Faults {
		f.Span = closed(f.Span, h.End)
		switch f.Part {
		case PartStore:
			t.store = append(t.store, f)
		case PartService:
			t.service = append(t.service, f)
		}
	}
	return t
}

func closed(s Span, end time.Time) Span {
	if s.To.IsZero() {
		s.To = end
	}
	return s
}

func (s Span) overlaps(from, to time.Time) bool { return !s.From.After(to) && !s.To.Before(from) }

func (s Span) length() time.Duration { return s.To.Sub(s.From) }

func between(t, from, to time.Time) bool { return !t.Before(from) && !t.After(to) }

func (t *trouble) stops(process string) []Span {
	if i, ok := t.byName[process]; ok {
		return t.processes[i].Stops
	}
	return nil
}

// wokeTo is the stop that the request's process woke up from right before it sent it.
func (t *trouble) wokeTo(r *Request) (Span, bool) {
	for _, stop := range t.stops(r.Process) {
		if between(stop.To, r.Sent.Add(-wakeTime), r.Sent.Add(storeSlack)) {
			return stop, true
		}
	}
	return Span{}, false
}

// stopped tells whether a process was stopped for a lease, at a time that touches the one given.
func (t *trouble) stopped(process string, lease time.Duration, from, to time.Time) bool {
	for _, stop := range t.stops(process) {
		if stop.length() >= lease && stop.overlaps(from, to) {
			return true
		}
	}
	return false
}

// endOf is when a process ended; zero: it lives.
func (t *trouble) endOf(process string) (at time.Time, killed bool) {
	if i, ok := t.byName[process]; ok {
		return t.processes[i].Life.To, t.processes[i].Killed
	}
	return time.Time{}, false
}

// storeAway tells whether a fault of the store of at least that length hit a process in that time; no process is any.
func (t *trouble) storeAway(process string, length time.Duration, from, to time.Time) bool {
	for _, f := range t.store {
		if hits(f, process) && f.Span.length() >= length && f.Span.overlaps(from, to) {
			return true
		}
	}
	return false
}

func (t *trouble) serviceAway(process string, from, to time.Time) bool {
	for _, f := range t.service {
		if hits(f, process) && f.Span.overlaps(from, to) {
			return true
		}
	}
	return false
}

func hits(f Fault, process string) bool {
	return f.Process == "" || process == "" || f.Process == process
}

// wasted is what can have used up an attempt without a request in that time, once each.
func (t *trouble) wasted(lease time.Duration, from, to time.Time) []Remark {
	var causes []Remark
	storeAway := t.storeAway("", 0, from, to)
	for _, p := range t.processes {
		switch {
		case !between(p.Life.To, from, to):
		case p.Killed:
			causes = append(causes, SkippedKilled)
		case storeAway: // else it gave its claims back
			causes = append(causes, SkippedTerminated)
		}
		for _, stop := range p.Stops {
			if stop.length() >= lease && between(stop.From, from, to) {
				causes = append(causes, SkippedStopped)
			}
		}
	}
	for _, f := range t.store {
		if f.Span.overlaps(from, to) {
			causes = append(causes, SkippedStore)
		}
	}
	return causes
}
