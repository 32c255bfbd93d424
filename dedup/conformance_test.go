package dedup

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	lease    = 30 * time.Second
	deadline = 60 * time.Second
	keep     = time.Hour
)

var (
	payload      = FingerprintOf([]byte("the payload"))
	otherPayload = FingerprintOf([]byte("another payload"))
)

func TestAFreshIDIsClaimed(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		want := Record{
			State: StateProcessing, Attempts: 1, FirstClaimed: c.Now, Fingerprint: payload,
			LeaseUntil: c.Now.Add(lease), Deadline: c.Now.Add(deadline),
		}
		if diff := cmp.Diff(want, c.Record); diff != "" {
			b.Errorf("claimed record (-want +got):\n%s", diff)
		}
		b.same(want)
		if left := c.Lease.Left(); left <= 0 || left > lease {
			b.Errorf("lease left: %v", left)
		}
		if left := c.Lease.DeadlineLeft(); left <= lease || left > deadline {
			b.Errorf("deadline left: %v", left)
		}
	})
}

func TestAClaimIsSafeToRepeat(t *testing.T) {
	eachStore(t, func(b *bench) {
		request := b.request(NewToken())
		first := b.claimAs(request, Claimed)
		b.travel(20 * time.Second)
		again := b.claimAs(request, Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 1})
		if again.Lease != first.Lease {
			b.Error("the repeat got another lease")
		}
		if left := again.Record.LeaseUntil.Sub(again.Now); left != lease {
			b.Errorf("the repeat left the lease at %v", left)
		}
		if left := again.Record.Deadline.Sub(again.Now); left != deadline {
			b.Errorf("the repeat left the deadline at %v", left)
		}
		// Also when the lease has run out, as long as nobody took it.
		b.travel(2 * deadline)
		b.claimAs(request, Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 1})
	})
}

func TestDoneIsDone(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		b.succeed(201)
		b.counts(counters{State: StateDone, Attempts: 1})
		if r := b.record(); r.Status != 201 || !r.FirstClaimed.Equal(c.Record.FirstClaimed) || r.At.IsZero() {
			b.Errorf("done record: %+v", r)
		}
		done := b.record()
		b.claim(Done)
		b.succeed(200) // stays the first success
		b.same(done)
		b.wait(c.Lease, time.Second, WaitFailed, FoundDone)
		b.bury(c.Lease, NewDeadID(), false, FoundDone)
		b.release(c.Lease, FoundDone)
		b.same(done)
	})
}

func TestSuccessIsRecordedWhateverTheRecord(t *testing.T) {
	eachStore(t, func(b *bench) {
		for name, prepare := range map[string]func(*bench){
			"absent":  func(*bench) {},
			"waiting": func(b *bench) { b.wait(b.claim(Claimed).Lease, time.Hour, WaitUnknown, Applied) },
			"dead":    func(b *bench) { b.bury(b.claim(Claimed).Lease, NewDeadID(), true, Applied) },
			"taken over": func(b *bench) {
				b.claim(Claimed)
				b.travel(2 * deadline)
				b.claim(Claimed)
			},
		} {
			b.Run(name, func(t *testing.T) {
				b := &bench{T: t, store: b.store, key: testKey(t), raw: b.raw, put: b.put}
				prepare(b)
				before, found, err := b.store.Inspect(context.Background(), b.key)
				if err != nil {
					t.Fatal(err)
				}
				b.succeed(200)
				after := b.record()
				if !found {
					before = Record{Attempts: 1, FirstClaimed: after.At}
				}
				ignore := cmpopts.IgnoreFields(Record{}, "State", "At", "Status", "LeaseUntil", "Deadline", "NotBefore", "Reason", "DeadID", "Fingerprint")
				if diff := cmp.Diff(before, after, ignore); diff != "" {
					t.Errorf("record before and after (-before +after):\n%s", diff)
				}
				if after.Fingerprint != payload {
					t.Errorf("fingerprint %x", after.Fingerprint)
				}
				b.claim(Done)
			})
		}
	})
}

func TestOneAtATime(t *testing.T) {
	eachStore(t, func(b *bench) {
		first := b.claim(Claimed)
		before := b.record()
		busy := b.claim(Busy)
		if busy.Wait <= lease || busy.Wait > deadline {
			b.Errorf("busy for %v, want until the deadline, in %v", busy.Wait, deadline)
		}
		b.same(before)
		// The lease is over, the request's deadline is not.
		b.travel(lease + time.Second)
		b.claim(Busy)
		b.travel(deadline - lease)
		b.claim(Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 2, Unknown: 1, EverUnknown: true})
		// The first holder is too late for everything but a success.
		taken := b.record()
		b.wait(first.Lease, 0, WaitFailed, NotOurs)
		b.bury(first.Lease, NewDeadID(), false, NotOurs)
		b.release(first.Lease, NotOurs)
		b.same(taken)
	})
}

func TestTheLeaseOutlivesAShortDeadline(t *testing.T) {
	eachStore(t, func(b *bench) {
		r := b.request(NewToken())
		r.Deadline = time.Second
		b.claimAs(r, Claimed)
		b.travel(2 * time.Second)
		if c := b.claim(Busy); c.Wait <= lease/2 {
			b.Errorf("busy for %v", c.Wait)
		}
	})
}

func TestNoCopyJumpsTheLadder(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.wait(b.claim(Claimed).Lease, 5*time.Second, WaitFailed, Applied)
		before := b.record()
		if c := b.claim(Waiting); c.Wait <= 4*time.Second || c.Wait > 5*time.Second {
			b.Errorf("waiting for %v, want 5s", c.Wait)
		}
		b.same(before)
		b.travel(6 * time.Second)
		b.claim(Claimed)
		b.counts(counters{State: StateProcessing, Attempts: 2})
	})
}

func TestOutcomesAreCountedApart(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.wait(b.claim(Claimed).Lease, 0, WaitFailed, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 1})
		b.wait(b.claim(Claimed).Lease, 0, WaitDeferred, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 2, Deferred: 1})
		b.wait(b.claim(Claimed).Lease, 0, WaitUnknown, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 3, Deferred: 1, Unknown: 1, EverUnknown: true})
		b.travel(deadline)
		b.wait(b.claim(Claimed).Lease, 0, WaitFailed, Applied) // sticky
		b.counts(counters{State: StateWaiting, Attempts: 4, Deferred: 1, Unknown: 1, EverUnknown: true})
		b.claim(Claimed)
		b.succeed(200)
		b.counts(counters{State: StateDone, Attempts: 5, Deferred: 1, Unknown: 1, EverUnknown: true})
	})
}

func TestAnotherPayloadIsAConflict(t *testing.T) {
	eachStore(t, func(b *bench) {
		conflict := func() {
			b.Helper()
			before := b.record()
			r := b.request(NewToken())
			r.Fingerprint = otherPayload
			r.DeadID = before.DeadID
			b.claimAs(r, Conflict)
			b.same(before)
		}
		c := b.claim(Claimed)
		conflict()
		b.travel(2 * deadline) // before a takeover, too
		conflict()
		b.wait(c.Lease, 0, WaitFailed, Applied)
		conflict()
		b.bury(b.claim(Claimed).Lease, NewDeadID(), false, Applied)
		conflict()
		b.succeed(200)
		conflict()
		// Not compared: an ordinary duplicate.
		r := b.request(NewToken())
		r.Fingerprint, r.Compare = otherPayload, false
		b.claimAs(r, Done)
	})
}

func TestCountersStopAtTheirWidth(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.wait(b.claim(Claimed).Lease, 0, WaitFailed, Applied)
		value, _ := b.raw(b.key)
		r, err := parseRecord(value, time.Now().UnixMilli())
		if err != nil {
			b.Fatal(err)
		}
		r.attempts, r.deferred, r.unknowns = 65535, 65535, 255
		b.put(b.key, string(appendRecord(nil, r)))
		b.wait(b.claim(Claimed).Lease, 0, WaitDeferred, Applied)
		c := b.claim(Claimed)
		b.wait(c.Lease, 0, WaitUnknown, Applied)
		b.counts(counters{State: StateWaiting, Attempts: 65535, Deferred: 65535, Unknown: 255, EverUnknown: true})
	})
}

func TestAForeignValueIsAnErrorAndStays(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.claim(Claimed)
		for _, foreign := range []string{"", "done", "p", "d", "d of another length", "w but much longer than a waiting record is"} {
			b.put(b.key, foreign)
			ctx := context.Background()
			if c, err := b.store.Claim(ctx, b.request(NewToken())); err == nil {
				b.Errorf("claim on %q: %+v", foreign, c)
			}
			if err := b.store.Succeed(ctx, b.key, 200, payload, keep); err == nil {
				b.Errorf("succeed on %q: no error", foreign)
			}
			if _, _, err := b.store.Inspect(ctx, b.key); err == nil {
				b.Errorf("inspect on %q: no error", foreign)
			}
			if value, _ := b.raw(b.key); value != foreign {
				b.Errorf("%q became %q", foreign, value)
			}
		}
	})
}

func TestBadDeadIDsAreRefused(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		for _, id := range []string{"", "xyz", "0123456789ABCDEF", "0123456789abcde"} {
			if _, err := b.store.Bury(context.Background(), c.Lease, ReasonRejected, id, false); err == nil {
				b.Errorf("bury with dead-id %q: no error", id)
			}
			if err := b.store.Undead(context.Background(), b.key, id); err == nil {
				b.Errorf("undead with dead-id %q: no error", id)
			}
		}
	})
}

func TestAClosedStoreSaysSo(t *testing.T) {
	eachStore(t, func(b *bench) {
		if err := b.store.Close(); err != nil {
			b.Fatal(err)
		}
		_, err := b.store.Claim(context.Background(), b.request(NewToken()))
		if !cmp.Equal(err, ErrClosed, cmpopts.EquateErrors()) {
			b.Errorf("claim: %v", err)
		}
	})
}
