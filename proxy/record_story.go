package proxy

import (
	"fmt"
	"strings"
	"time"

	"rabbitonce/dedup"
)

// story is what a record tells of its message, in the form that --json prints. Times are the store's clock; those that
// the record does not have are left out.
type story struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
	// Source is where the ID was found, as in DEDUP_ID_FROM.
	Source string `json:"source"`
	Key    string `json:"key"`
	// State is processing, waiting, done or dead; foreign for a key that holds no record.
	State           string     `json:"state"`
	Attempts        int        `json:"attempts"` // requests that began or may have begun, the two below included
	Deferred        int        `json:"deferred"`
	Unknown         int        `json:"unknown"`
	EverUnknown     bool       `json:"ever_unknown"`
	LastOutcome     string     `json:"last_outcome,omitempty"`
	Status          int        `json:"status,omitempty"` // done: of the answer
	Reason          string     `json:"reason,omitempty"` // dead
	DeadID          string     `json:"dead_id,omitempty"`
	FirstClaimed    *time.Time `json:"first_claimed,omitempty"`
	LeaseUntil      *time.Time `json:"lease_until,omitempty"`
	RequestDeadline *time.Time `json:"request_deadline,omitempty"`
	NotBefore       *time.Time `json:"not_before,omitempty"`
	DoneAt          *time.Time `json:"done_at,omitempty"`
	DeadAt          *time.Time `json:"dead_at,omitempty"`
	Now             *time.Time `json:"now,omitempty"`     // the store's clock
	Expires         *time.Time `json:"expires,omitempty"` // when the record is forgotten, if nothing changes it
	Where           string     `json:"where"`
}

// tell makes the story of what a place holds.
func tell(q QueueConfig, id string, p recordPlace) story {
	s := story{Queue: q.Name, ID: id, Source: p.source, Key: p.key}
	if p.foreign != nil {
		s.State = "foreign"
		s.Where = "the key holds something that this program did not write, so a message with this ID is not claimed: it stays in " + q.Name +
			", unacknowledged, and is tried again. Find out who writes there (two programs with one DEDUP_PREFIX?), then delete the key with the store's own tools"
		return s
	}
	rec, now := p.sighting.Record, p.sighting.Now
	s.State = rec.State.String()
	s.Attempts, s.Deferred, s.Unknown, s.EverUnknown = rec.Attempts, rec.Deferred, rec.Unknown, rec.EverUnknown
	s.LastOutcome = lastOutcome(rec)
	s.FirstClaimed, s.Now = moment(rec.FirstClaimed), moment(now)
	s.LeaseUntil, s.RequestDeadline = moment(rec.LeaseUntil), moment(rec.Deadline)
	if p.sighting.Left > 0 {
		s.Expires = moment(now.Add(p.sighting.Left))
	}
	switch rec.State {
	case dedup.StateWaiting:
		s.NotBefore = moment(rec.NotBefore)
	case dedup.StateDone:
		s.Status, s.DoneAt = rec.Status, moment(rec.At)
	case dedup.StateDead:
		s.Reason, s.DeadID, s.DeadAt = rec.Reason.String(), rec.DeadID, moment(rec.At)
		if now.Before(rec.NotBefore) {
			s.NotBefore = moment(rec.NotBefore)
		}
	}
	s.Where = whereabouts(q, rec, now)
	return s
}

// moment is a time as it is printed; nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// lastOutcome is how the latest attempt that is over ended, as far as the record tells: it counts deferred and unknown
// outcomes and keeps no order.
func lastOutcome(rec dedup.Record) string {
	over := rec.Attempts
	switch rec.State {
	case dedup.StateDone:
		if rec.Status == 0 {
			return "done"
		}
		return fmt.Sprintf("done, HTTP status %d", rec.Status)
	case dedup.StateDead:
		return "dead-lettered: " + rec.Reason.String()
	case dedup.StateProcessing:
		over--
	}
	var seen []string
	for class, n := range map[string]int{"failed": over - rec.Deferred - rec.Unknown, "deferred": rec.Deferred, "unknown": rec.Unknown} {
		if n > 0 {
			seen = append(seen, class)
		}
	}
	switch len(seen) {
	case 0:
		return "none yet"
	case 1:
		return seen[0]
	}
	return "not told: the record counts outcomes and keeps no order"
}

// whereabouts says in words where the message may be now, and what comes next.
func whereabouts(q QueueConfig, rec dedup.Record, now time.Time) string {
	switch rec.State {
	case dedup.StateProcessing:
		return whereProcessing(q, rec, now)
	case dedup.StateWaiting:
		where := fmt.Sprintf("unacknowledged at a replica, which waits with it; or in a wait queue (%s), or back in %s from there", waitQueueNames(q), q.Name)
		if q.Ordering.kept() {
			where = "unacknowledged in " + q.Name + ", at a replica which waits with it (ORDERING)"
		}
		if now.Before(rec.NotBefore) {
			return where + ". It is claimed again when it is due"
		}
		return where + ". It is due, and claimed when it arrives: if that does not happen, is a replica consuming, and is the message still in one of these queues?"
	case dedup.StateDone:
		return "acknowledged, so in no queue. A copy that comes while the record lives is acknowledged without a request"
	case dedup.StateDead:
		if q.DeadLetterMode == DeadLetterByReject {
			return whereRejected(q, rec)
		}
		where := fmt.Sprintf("in %s, as a letter with x-rabbitonce-dead-id %s", q.DeadLetterQueue, rec.DeadID)
		if rec.EverUnknown {
			return where + ". Only that letter, put back into " + q.Name + " (`rabbitonce redrive`), opens the record (or `rabbitonce forget`); any other copy is dead-lettered again"
		}
		return where + "; or on its way there, for the record is written first and deleted once the letter is safe"
	}
	return ""
}

// whereRejected is about a message that went to the queue's own dead-letter exchange, where its dead-id cannot travel.
func whereRejected(q QueueConfig, rec dedup.Record) string {
	where := fmt.Sprintf("rejected: where the dead-letter exchange of %s puts it, or dropped if there is none", q.Name)
	if rec.EverUnknown {
		return where + ". Put back as it is, it dies again: `rabbitonce forget` opens the record"
	}
	return where + "; or about to be, for the record is written first and deleted afterwards"
}

func whereProcessing(q QueueConfig, rec dedup.Record, now time.Time) string {
	switch {
	case now.Before(rec.LeaseUntil):
		return "at work in a replica, unacknowledged in " + q.Name + ". The lease is renewed while the request runs; the record does not say which replica holds it: their debug logs do"
	case now.Before(rec.Deadline):
		return "unacknowledged in " + q.Name + ". Its replica is gone or cannot reach the store, and the service may still be at work on the request: nobody repeats it before the request's deadline"
	}
	return "in " + q.Name + ". Its replica is gone: the next copy that arrives is claimed as another attempt, flagged as after an unknown outcome. If that does not happen, is a replica consuming?"
}

// waitQueueNames lists the wait queues that a message of the queue can be in.
func waitQueueNames(q QueueConfig) string {
	var names []string
	for _, step := range waitSteps(q.Retry.Backoff, q.Retry.Hold) {
		names = append(names, waitQueue(q.Name, step))
	}
	return strings.Join(names, ", ")
}

// nothingRecorded says what it means that there is no record.
func nothingRecorded(q QueueConfig) string {
	return fmt.Sprintf(`A message with this ID would be processed as if it were new. Either
  - it was never claimed for this queue: it is still ahead, its ID is another one (IDs are compared byte for byte), or another consumer has it; or
  - its record is over: records live for DEDUP_RETENTION (%s) after their last change; or
  - it was dead-lettered and no outcome was ever unknown: the record is deleted once the letter is safe (%s); or
  - its claim was given back before a request began (shutdown, service unreachable), and it is in %s.`,
		shortDuration(q.Dedup.Retention), lettersPlace(q), q.Name)
}

// lettersPlace names where a queue's dead letters go.
func lettersPlace(q QueueConfig) string {
	if q.DeadLetterMode == DeadLetterByReject {
		return "the dead-letter exchange of " + q.Name
	}
	return q.DeadLetterQueue
}
