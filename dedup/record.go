package dedup

import (
	"fmt"
	"time"
)

// State is what a record says about its ID.
type State uint8

// The states. A key that is absent has none.
const (
	StateProcessing State = iota + 1 // somebody holds it, until the lease ends
	StateWaiting                     // it is to be tried again, not before a time
	StateDone                        // the work is done
	StateDead                        // it was dead-lettered
)

func (s State) String() string {
	switch s {
	case StateProcessing:
		return "processing"
	case StateWaiting:
		return "waiting"
	case StateDone:
		return "done"
	case StateDead:
		return "dead"
	}
	return fmt.Sprintf("state-%d", uint8(s))
}

// Record is what the store knows about one ID. Times are the store's clock;
// those that the state does not have are zero.
type Record struct {
	State       State
	EverUnknown bool // an outcome was unknown once; sticky

	Attempts int // claims that led, or may have led, to a request; this one included
	Deferred int // how many of them the service deferred
	Unknown  int // how many of them had an unknown outcome

	FirstClaimed time.Time
	Fingerprint  Fingerprint

	LeaseUntil time.Time // processing
	Deadline   time.Time // processing: when the request at work has ended for certain
	NotBefore  time.Time // waiting: when it is due; dead: when its letter may open it
	At         time.Time // done, dead: since when
	Status     int       // done: the HTTP status; 0 when none is known
	Reason     Reason    // dead
	DeadID     string    // dead: 16 hexadecimal digits
}

// record is a Record as the protocol works on it: milliseconds of the store's
// clock, counters of the width they are stored in, and the parts that only
// the protocol needs.
type record struct {
	state       State
	everUnknown bool
	attempts    uint16
	deferred    uint16
	unknowns    uint8
	first       int64
	fingerprint Fingerprint

	token      Token // processing, and the four below
	leaseUntil int64
	deadline   int64
	undo       undo
	previous   *record // with undoRestore: what the claim found

	notBefore int64  // waiting
	at        int64  // done, dead
	status    uint16 // done
	reason    Reason // dead
	deadID    deadID // dead
}

// undo says what releasing a processing record does.
type undo uint8

const (
	undoDelete  undo = 0 // the claim created the record: delete it
	undoRestore undo = 1 // put back what the claim found
	undoNone    undo = 2 // cannot be released: what it would restore was dropped
)

// stripped returns the record as another claim keeps it for its own undo.
// A processing record loses its own undo, so that undos never nest; its
// holder has lost the lease, and has nothing left to give back.
func (r *record) stripped() *record {
	copied := *r
	if r.state == StateProcessing {
		copied.undo, copied.previous = undoNone, nil
	}
	return &copied
}

// busyUntil is when a processing record may be taken over: when its lease has
// ended and so has the request of its holder, who may be dead while the
// service still works.
func (r *record) busyUntil() int64 {
	return max(r.leaseUntil, r.deadline)
}

// export returns the record as the outside sees it.
func (r *record) export() Record {
	out := Record{
		State:        r.state,
		EverUnknown:  r.everUnknown,
		Attempts:     int(r.attempts),
		Deferred:     int(r.deferred),
		Unknown:      int(r.unknowns),
		FirstClaimed: time.UnixMilli(r.first),
		Fingerprint:  r.fingerprint,
	}
	switch r.state {
	case StateProcessing:
		out.LeaseUntil = time.UnixMilli(r.leaseUntil)
		out.Deadline = time.UnixMilli(r.deadline)
	case StateWaiting:
		out.NotBefore = time.UnixMilli(r.notBefore)
	case StateDone:
		out.At = time.UnixMilli(r.at)
		out.Status = int(r.status)
	case StateDead:
		out.At = time.UnixMilli(r.at)
		out.NotBefore = time.UnixMilli(r.notBefore)
		out.Reason = r.reason
		out.DeadID = r.deadID.String()
	}
	return out
}
