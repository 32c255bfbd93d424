package faults

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

// summary adds up rounds.
type summary struct {
	rounds  int
	took    time.Duration // under faults
	faults  map[string]int
	hit     map[string]int // requests under way that the faults of a kind have hit
	remarks map[check.Remark]int
	broken  int
	parked  float64
}

func (s *summary) add(h *check.History, r check.Report, d time.Duration, parked float64) {
	if s.faults == nil {
		s.faults, s.hit, s.remarks = map[string]int{}, map[string]int{}, map[check.Remark]int{}
	}
	s.rounds++
	s.parked = parked
	s.took += d
	s.broken += len(r.Violations)
	for _, f := range h.Faults {
		s.hit[f.Kind] += f.InFlight
		s.faults[f.Kind]++
	}
	for name, n := range r.Remarks {
		s.remarks[name] += n
	}
}

// text is the summary as docs/guarantees.md shows it.
func (s *summary) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d rounds, %v under faults, %d violations\n\n", s.rounds, s.took, s.broken)
	for _, name := range slices.Sorted(maps.Keys(s.remarks)) {
		fmt.Fprintf(&b, "%9d  %s\n", s.remarks[name], name)
	}
	fmt.Fprintf(&b, "%9.0f  moved to a wait queue by the process that lived throughout\n", s.parked)
	fmt.Fprintf(&b, "\n%9s  %9s  %s\n", "faults", "requests", "kind")
	for _, kind := range slices.SortedFunc(maps.Keys(s.faults), func(a, b string) int { return cmp.Compare(a, b) }) {
		fmt.Fprintf(&b, "%9d  %9d  %s\n", s.faults[kind], s.hit[kind], kind)
	}
	return b.String()
}

const (
	// longRun is from when on a run has to have hit enough with each kind.
	longRun = 10 * time.Minute
	enough  = 20
)

// conclusive is an error when a long run has hit next to nothing with a kind of fault.
func (s *summary) conclusive() error {
	if s.took < longRun {
		return nil
	}
	var errs []error
	if s.parked == 0 {
		errs = append(errs, errors.New("inconclusive: no message took a wait queue"))
	}
	for _, l := range lanes() {
		for _, k := range l.kinds {
			if s.hit[k.name] < enough {
				errs = append(errs, fmt.Errorf("inconclusive: %q hit %d requests under way, of at least %d", k.name, s.hit[k.name], enough))
			}
		}
	}
	return errors.Join(errs...)
}

func roundLine(h *check.History, r check.Report) string {
	return fmt.Sprintf("%d publications, %d requests, %d faults, %d letters, %d violations",
		len(h.Publications), len(h.Requests), len(h.Faults), len(h.Letters), len(r.Violations))
}

// mostExplained bounds how many violations of a rule are told with their story.
const mostExplained = 3

// explain tells of each violation all that is known of its ID, and the faults meanwhile.
func explain(h *check.History, r check.Report) string {
	var b strings.Builder
	told := map[check.Rule]int{}
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
		if told[v.Rule]++; told[v.Rule] <= mostExplained {
			story(&b, h, v.ID)
		}
	}
	return b.String()
}

// event is a line of a story.
type event struct {
	at   time.Time
	text string
}

func story(b *strings.Builder, h *check.History, id check.ID) {
	var events []event
	tell := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			events = append(events, event{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, p := range h.Publications {
		if p.ID == id {
			tell(p.At, "published, confirmed %t, conflict %t, destiny %d", p.Confirmed, p.Conflict, p.Destiny)
		}
	}
	for _, r := range h.Requests {
		if r.ID == id {
			tell(r.Sent, "%s sends attempt %d, unknown %t", r.Process, r.Attempt, r.Unknown)
			tell(r.Began, "the service has attempt %d", r.Attempt)
			tell(r.Ended, "the service ends attempt %d: worked %t, status %d", r.Attempt, r.Worked, r.Status)
		}
	}
	for _, w := range h.Writes {
		if w.ID == id {
			tell(w.At, "record: %s, attempts %d, unknown %t, token %.8s", w.State, w.Attempts, w.Unknown, w.Token)
		}
	}
	if len(events) > 0 {
		from, to := events[0].at, events[0].at
		for _, e := range events {
			from, to = minTime(from, e.at), maxTime(to, e.at)
		}
		for _, f := range h.Faults {
			if f.Span.From.Before(to) && f.Span.To.After(from) {
				tell(f.Span.From, "fault begins: %s %s", f.Kind, f.Process)
				tell(f.Span.To, "fault ends: %s %s", f.Kind, f.Process)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range events {
		fmt.Fprintf(b, "    %s %s\n", e.at.Format("15:04:05.000"), e.text)
	}
	for _, l := range h.Letters {
		if l.ID == id {
			fmt.Fprintf(b, "    letter: %s after %d attempts\n", l.Reason, l.Attempts)
		}
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
