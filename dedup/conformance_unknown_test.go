package dedup

import (
	"context"
	"testing"
	"time"
)

func TestAnUnknownOutcomeWaitsForItsDeadline(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		b.wait(c.Lease, time.Second, WaitUnknown, Applied)
		if got := b.record().NotBefore; !got.Equal(c.Record.Deadline) {
			b.Errorf("not before %v, want the deadline %v", got, c.Record.Deadline)
		}
		b.travel(deadline)
		c = b.claim(Claimed)
		b.wait(c.Lease, 10*deadline, WaitUnknown, Applied)
		if got := b.record().NotBefore; got.Before(c.Record.Deadline.Add(8 * deadline)) {
			b.Errorf("not before %v, want the delay", got)
		}
	})
}

// The service said that there was no work. What a later request ends in counts anew, and a release brings the flag back.
func TestClearForgetsWhatWasUnknown(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.wait(b.claim(Claimed).Lease, 0, WaitUnknown, Applied)
		b.travel(deadline)
		c := b.claim(Claimed)
		b.settled(b.store.Clear(context.Background(), c.Lease))(Applied)
		b.settled(b.store.Clear(context.Background(), c.Lease))(Applied) // its reply was lost
		b.counts(counters{State: StateProcessing, Attempts: 2})
		if got := b.record(); !got.Deadline.Equal(c.Record.Deadline) {
			b.Errorf("the deadline moved from %v to %v", c.Record.Deadline, got.Deadline)
		}
		b.release(c.Lease, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 1, Unknown: 1, EverUnknown: true})
		c = b.claim(Claimed)
		b.settled(b.store.Clear(context.Background(), c.Lease))(Applied)
		b.wait(c.Lease, 0, WaitFailed, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 2})
		b.settled(b.store.Clear(context.Background(), c.Lease))(NotOurs)
		b.travel(deadline)
		c = b.claim(Claimed)
		b.succeed(200)
		b.settled(b.store.Clear(context.Background(), c.Lease))(FoundDone)
	})
}

// A holder that dies in the request after a lookup leaves an unknown outcome again.
func TestAfterAClearATakeoverIsUnknown(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.wait(b.claim(Claimed).Lease, 0, WaitUnknown, Applied)
		b.travel(deadline)
		b.settled(b.store.Clear(context.Background(), b.claim(Claimed).Lease))(Applied)
		b.travel(100 * deadline)
		b.claim(Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 3, Unknown: 1, EverUnknown: true})
	})
}

func TestDeadIsNotRun(t *testing.T) {
	eachStore(t, func(b *bench) {
		id := NewDeadID()
		b.bury(b.claim(Claimed).Lease, id, false, Applied)
		if r := b.record(); r.Reason != ReasonRejected || r.DeadID != id || r.At.IsZero() {
			b.Errorf("dead record: %+v", r)
		}
		before := b.record()
		b.claim(Dead)
		for _, other := range []string{NewDeadID(), "no dead-id", id + "00", ""} {
			r := b.request(NewToken())
			r.DeadID = other
			b.claimAs(r, Dead)
		}
		b.undead(NewDeadID())
		b.same(before)
		b.undead(id)
		b.absent()
		b.undead(id)
		b.claim(Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 1})
	})
}

func TestDeadWithAnUnknownOutcomeStays(t *testing.T) {
	eachStore(t, func(b *bench) {
		first := b.claim(Claimed)
		b.wait(first.Lease, 0, WaitDeferred, Applied)
		id := NewDeadID()
		b.bury(b.claim(Claimed).Lease, id, true, Applied)
		b.counts(counters{State: StateDead, Attempts: 2, Deferred: 1, Unknown: 1, EverUnknown: true})
		before := b.record()
		b.undead(id)
		b.same(before)
		// Only its own letter opens it, and not before the request whose outcome is unknown has surely ended; its retries start again, flagged.
		r := b.request(NewToken())
		r.DeadID = id
		if early := b.claimAs(r, Waiting); early.Wait <= 0 || early.Wait > deadline {
			b.Errorf("told to wait for %v, want up to %v", early.Wait, deadline)
		}
		b.same(before)
		b.travel(deadline + time.Second)
		opened := b.claimAs(r, Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 1, EverUnknown: true})
		if !opened.Record.FirstClaimed.Equal(opened.Now) {
			b.Errorf("first claimed %v, want now, %v", opened.Record.FirstClaimed, opened.Now)
		}
	})
}
