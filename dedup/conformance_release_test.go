package dedup

import (
	"context"
	"testing"
	"time"
)

func TestReleaseRestoresWhatTheClaimFound(t *testing.T) {
	dead := NewDeadID()
	for name, prepare := range map[string]func(*bench){
		"waiting": func(b *bench) {
			b.wait(b.claim(Claimed).Lease, time.Second, WaitDeferred, Applied)
			b.travel(time.Minute)
		},
		"dead": func(b *bench) {
			b.bury(b.claim(Claimed).Lease, dead, true, Applied)
			b.travel(2 * deadline)
		},
		"processing": func(b *bench) {
			b.claim(Claimed)
			b.travel(2 * deadline)
		},
		"processing, itself a takeover": func(b *bench) {
			b.claim(Claimed)
			b.travel(2 * deadline)
			b.claim(Claimed)
			b.travel(2 * deadline)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(b *bench) {
				prepare(b)
				before := b.record()
				r := b.request(NewToken())
				r.DeadID = dead
				b.claimAs(r, Claimed)
				again := b.claimAs(r, Claimed) // a repeat does not forget it
				b.release(again.Lease, Applied)
				b.same(before)
				b.release(again.Lease, NotOurs)
				b.same(before)
			})
		})
	}
}

func TestReleaseDeletesOnlyWhatTheClaimCreated(t *testing.T) {
	eachStore(t, func(b *bench) {
		r := b.request(NewToken())
		b.claimAs(r, Claimed)
		b.release(b.claimAs(r, Claimed).Lease, Applied)
		b.absent()
	})
}

func TestAbandonReleasesAClaimThatNobodyHeardOf(t *testing.T) {
	eachStore(t, func(b *bench) {
		abandon := func(r ClaimRequest, want Settlement) {
			b.Helper()
			b.settled(b.store.Abandon(context.Background(), r))(want)
		}
		never := b.request(NewToken())
		abandon(never, NotOurs)
		b.absent()
		r := b.request(NewToken())
		b.claimAs(r, Claimed) // suppose that this answer was lost
		abandon(never, NotOurs)
		abandon(r, Applied)
		b.absent()
		b.wait(b.claim(Claimed).Lease, 0, WaitDeferred, Applied)
		before := b.record()
		b.claimAs(r, Claimed)
		abandon(r, Applied)
		b.same(before)
		b.succeed(200)
		abandon(r, FoundDone)
	})
}

func TestAHolderWhoseClaimCameBackHasNothingToRelease(t *testing.T) {
	eachStore(t, func(b *bench) {
		first := b.claim(Claimed)
		b.travel(2 * deadline)
		b.release(b.claim(Claimed).Lease, Applied)
		before := b.record()
		b.release(first.Lease, NotOurs)
		b.same(before)
	})
}

func TestSettlingWhatIsGone(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		b.release(c.Lease, Applied)
		b.wait(c.Lease, 0, WaitFailed, NotOurs)
		b.bury(c.Lease, NewDeadID(), false, NotOurs)
		b.release(c.Lease, NotOurs)
		b.undead(NewDeadID())
		b.absent()
	})
}
