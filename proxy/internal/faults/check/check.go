package check

import (
	"fmt"
	"time"
)

// How exact the journals and the program are.
const (
	storeSlack    = 50 * time.Millisecond  // between a time of the store and one of the wire
	deadlineSlack = 100 * time.Millisecond // a request's deadline counts from a little before Sent
	repeatSlack   = 200 * time.Millisecond // the same, for the repeat that waits for it
	wakeTime      = time.Second            // a process that was stopped has sent by then what it was about to send
)

// Check says what a run broke, in the order of the IDs' first publications.
func Check(h *History) Report {
	c := &checker{end: h.End, trouble: newTrouble(h), report: Report{Remarks: map[Remark]int{}}}
	for _, s := range stories(h) {
		c.findStrays(s)
		for _, rule := range rules() {
			rule(c, s)
		}
		c.countStory(s)
	}
	c.strayLimit()
	c.countFaults(h.Faults)
	return c.report
}

// rules has one function a promise.
func rules() []func(*checker, *story) {
	return []func(*checker, *story){
		(*checker).neverPublished, (*checker).lost, (*checker).left,
		(*checker).atOnce, (*checker).unflagged, (*checker).secondPost, (*checker).onceUnderLookup, (*checker).tooEarly,
		(*checker).attempts, (*checker).attemptsSpent,
		(*checker).afterDone, (*checker).unrecorded,
		(*checker).lettersChanged, (*checker).lettersReason, (*checker).lettersRepeated,
	}
}

type checker struct {
	end     time.Time
	trouble *trouble
	strays  []stray
	report  Report
}

func (c *checker) violate(rule Rule, id ID, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{Rule: rule, ID: id, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) remark(r Remark) { c.report.Remarks[r]++ }

// ended is when the service had ended its work on a request.
func (c *checker) ended(r *Request) time.Time {
	if r.Ended.IsZero() {
		return c.end
	}
	return r.Ended
}

// begun is when the program began a request, by which its deadline counts: before a stop from which it woke up only to send.
func (c *checker) begun(s *story, r *Request) time.Time {
	if stop, woke := c.trouble.wokeTo(r); woke && s.claimedBefore(r, stop.To) {
		return stop.From
	}
	return r.Sent
}

// deadline is the end of a request for the program.
func (c *checker) deadline(s *story, r *Request) time.Time { return c.begun(s, r).Add(s.queue.Timeout) }

// failedWhole tells whether a whole answer was there by then that says that the work was not done.
func (c *checker) failedWhole(r *Request, by time.Time) bool {
	return answeredFailed(r) && !c.ended(r).After(by)
}

func answeredFailed(r *Request) bool {
	return !r.Worked && !answeredUnknown(r) && r.Status/100 != 2
}

// answeredUnknown tells whether no answer, or only one of those that say nothing (502, 504), is there for a request.
func answeredUnknown(r *Request) bool {
	return r.Status == 0 || r.Status == 502 || r.Status == 504
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

func describe(r *Request) string {
	text := fmt.Sprintf("attempt %d of %s, sent %s", r.Attempt, r.Process, clock(r.Sent))
	if r.Unknown {
		text += ", flagged"
	}
	switch {
	case !r.Arrived():
		return text + ", never arrived"
	case r.Ended.IsZero():
		return text + ", began " + clock(r.Began) + ", still at work"
	}
	text += fmt.Sprintf(", at work %s to %s, status %d", clock(r.Began), clock(r.Ended), r.Status)
	if r.Worked {
		text += ", worked"
	}
	return text
}
