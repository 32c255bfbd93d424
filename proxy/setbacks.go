package proxy

import (
	"net/http"
	"time"

	"rabbitonce/forward"
)

// wellDone tells the throttle of a message that ended done.
func (q *queue) wellDone() {
	q.conflicts.Store(0)
	q.hint.Store(nil)
	if q.throttle.succeeded() {
		q.log.Info("a message ended done: going on as usual")
	}
}

// noteOutcome tells the throttle how a request ended, when it did not end done. A service that was not reached is no
// setback: the queue pauses for it.
func (q *queue) noteOutcome(res forward.Result, began time.Time) {
	switch res.Outcome {
	case forward.Done, forward.Unreachable:
		return
	}
	if !paced(res) {
		q.setback(setback{outcome: res.Outcome, status: res.Status, began: began})
	}
	if res.Status != http.StatusConflict || res.Outcome != forward.Defer {
		q.conflicts.Store(0)
		return
	}
	if q.conflicts.Add(1) == conflictsInARow {
		hint := setback{outcome: res.Outcome, status: res.Status}.advice()
		q.hint.Store(&hint)
		q.log.Warn("the service has answered 409 several times in a row", "in_a_row", conflictsInARow, "hint", hint)
	}
}

// paced tells of a service that says when it is ready for more: that is its own brake, and dead-letters nothing.
func paced(res forward.Result) bool {
	return res.Outcome == forward.Defer &&
		(res.RetryAfter > 0 || res.Status == http.StatusTooManyRequests || res.Status == http.StatusServiceUnavailable)
}

// conflictsInARow is how many answers 409 make a hint.
const conflictsInARow = 3

// setback tells the throttle of a message that did not end done, and says so when it begins to brake.
func (q *queue) setback(s setback) {
	if q.throttle.failed(s) {
		_, streak := q.throttle.state()
		q.log.Warn("messages in a row did not end done: going on with one at a time, with growing pauses, until one does",
			"in_a_row", streak, "last", s.String(), "hint", s.advice())
	}
}

// BrakeStatus is a queue's brake in /status: messages in a row did not end done.
type BrakeStatus struct {
	Since  time.Time `json:"since"`
	Next   time.Time `json:"next"` // the next message is not tried before
	InARow int       `json:"in_a_row"`
	Last   string    `json:"last"`
	Hint   string    `json:"hint"`
}

func (q *queue) brakeStatus() *BrakeStatus {
	brake, streak := q.throttle.state()
	if brake == nil {
		return nil
	}
	return &BrakeStatus{Since: brake.since.UTC(), Next: brake.until.UTC(), InARow: streak, Last: brake.last.String(), Hint: brake.last.advice()}
}
