package dedup

import (
	"fmt"
	"time"
)

// word names an operation on the wire, in metrics and in errors.
type word string

const (
	wordClaim   word = "claim"
	wordRenew   word = "renew"
	wordSucceed word = "succeed"
	wordWait    word = "wait"
	wordBury    word = "bury"
	wordRelease word = "release"
	wordClear   word = "clear"
	wordUndead  word = "undead"
	wordForget  word = "forget"
)

func words() []word {
	return []word{wordClaim, wordRenew, wordSucceed, wordWait, wordBury, wordRelease, wordClear, wordUndead, wordForget}
}

// operation is one request to the protocol. Each word uses the fields that
// scripts/protocol.lua lists for it. Durations are milliseconds.
type operation struct {
	word        word
	key         string
	token       Token
	fingerprint Fingerprint
	compare     bool
	lease       int64
	deadline    int64
	retention   int64
	delay       int64
	class       WaitClass
	status      uint16
	reason      Reason
	unknown     bool
	deadID      deadID
	hasDeadID   bool   // a claim may come without one
	expected    string // the stored form of the record to forget

	confirm bool // an answer counts only when DEDUP_WAIT_REPLICAS have it
}

// milliseconds rounds up, so that no positive duration becomes none; negative
// ones count as none, and none is longer than what a record's times can tell.
func milliseconds(d time.Duration) int64 {
	d = min(d, maxRetention)
	return max(0, int64((d+time.Millisecond-1)/time.Millisecond))
}

// WaitClass is why a message waits for another try.
type WaitClass uint8

// The classes.
const (
	WaitFailed   WaitClass = iota // the attempt failed
	WaitDeferred                  // the service asked for a later time
	WaitUnknown                   // nobody knows whether the work was done
)

func (c WaitClass) String() string {
	switch c {
	case WaitFailed:
		return "failed"
	case WaitDeferred:
		return "deferred"
	case WaitUnknown:
		return "unknown"
	}
	return fmt.Sprintf("class-%d", uint8(c))
}

// Verdict is the answer to a claim.
type Verdict uint8

// The verdicts.
const (
	Claimed  Verdict = iota + 1 // it is yours, until the lease ends
	Done                        // the work is done
	Busy                        // another claim holds it
	Waiting                     // it is to be tried again, but not yet
	Dead                        // it was dead-lettered
	Conflict                    // the ID was seen with another payload
)

func (v Verdict) String() string {
	switch v {
	case Claimed:
		return "claimed"
	case Done:
		return "done"
	case Busy:
		return "busy"
	case Waiting:
		return "waiting"
	case Dead:
		return "dead"
	case Conflict:
		return "conflict"
	}
	return fmt.Sprintf("verdict-%d", uint8(v))
}

// Settlement is the answer to the operations that only a holder may do.
type Settlement uint8

// The settlements.
const (
	Applied   Settlement = iota + 1 // the record was yours and is changed
	FoundDone                       // the work is done: ack
	NotOurs                         // it is somebody else's by now, or gone: claim anew
)

func (s Settlement) String() string {
	switch s {
	case Applied:
		return "applied"
	case FoundDone:
		return "found-done"
	case NotOurs:
		return "not-ours"
	}
	return fmt.Sprintf("settlement-%d", uint8(s))
}
