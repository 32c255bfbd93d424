package dedup

import (
	"context"
	"time"
)

// backend runs the protocol's operations. All methods are safe for concurrent
// use.
type backend interface {
	// run performs the calls of one group, in order, and sets each call's
	// answer or error. A failure of one call is that call's alone.
	run(ctx context.Context, group []*call)
	// get reads a key's value without changing it.
	get(ctx context.Context, key string) (value string, found bool, err error)
	// look reads a key with the store's clock and when the key expires, without
	// changing it.
	look(ctx context.Context, key string) (sight, error)
	ping(ctx context.Context) error
	// advise returns what is worth warning of in how the store is set up.
	advise(ctx context.Context) []string
	// examine tells what the servers say about themselves.
	examine(ctx context.Context) ([]Server, error)
	close() error
}

// call is one operation on its way through the committer.
type call struct {
	op   operation
	sent time.Time // by the caller, before it was queued: leases count from here

	answer answer
	err    error

	// The committer tells once that answer and err are set: it calls finish, or
	// sends to done when there is none.
	finish func(*call)
	done   chan struct{} // holds one
}

func (c *call) end() {
	if c.finish != nil {
		c.finish(c)
		return
	}
	c.done <- struct{}{}
}

// answer is what the protocol said.
type answer struct {
	letter letter
	now    int64   // the store's clock
	record *record // as it now is; nil: there is none
}

// parseAnswer reads the answer of scripts/protocol.lua.
func parseAnswer(text string) (answer, error) {
	const size = 7 // letter and clock
	if len(text) < size {
		return answer{}, errCorrupt
	}
	a := answer{letter: letter(text[0]), now: readClock(text[1:])}
	if len(text) == size {
		return a, nil
	}
	var err error
	a.record, err = parseRecord(text[size:], a.now)
	return a, err
}

// readClock reads 48 bits of milliseconds since 1970.
func readClock(b string) int64 {
	return int64(b[0])<<40 | int64(b[1])<<32 | int64(b[2])<<24 | int64(b[3])<<16 | int64(b[4])<<8 | int64(b[5])
}

// verdict reads a claim's answer.
func (a answer) verdict() (Verdict, bool) {
	switch a.letter {
	case letterClaimed:
		return Claimed, true
	case letterDone:
		return Done, true
	case letterBusy:
		return Busy, true
	case letterWaiting:
		return Waiting, true
	case letterDead:
		return Dead, true
	case letterConflict:
		return Conflict, true
	}
	return 0, false
}

// settlement reads the answer of every other operation.
func (a answer) settlement() (Settlement, bool) {
	switch a.letter {
	case letterApplied:
		return Applied, true
	case letterDone:
		return FoundDone, true
	case letterNotOurs:
		return NotOurs, true
	}
	return 0, false
}
