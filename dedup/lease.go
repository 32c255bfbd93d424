package dedup

import (
	"sync"
	"time"
)

// lostMargin is how long before its end a lease that could not be renewed
// counts as lost: a tenth of it, two seconds at most. It is the time there is
// to cancel a request before another holder may begin.
func lostMargin(lease time.Duration) time.Duration {
	return min(lease/10, 2*time.Second)
}

// Lease is a granted claim. Store.Run renews it, every third of its length,
// until one of Store.Wait, Bury and Release was answered, or Drop is called.
// It is safe for concurrent use.
type Lease struct {
	key       string
	token     Token
	length    time.Duration
	retention int64 // milliseconds
	keeper    *keeper

	mu       sync.Mutex
	end      time.Time // by the local monotonic clock, from when it was sent
	deadline time.Time
	renewAt  time.Time // when the keeper renews it next
	renewing bool      // a renewal is in flight
	failing  bool      // the latest renewal failed
	over     bool      // lost or dropped: nothing changes any more
	lost     bool
	told     chan struct{} // closed when it is lost; nil until somebody asks
	onLost   func()        // nil: nobody is to be called
}

// Key returns the key of the record.
func (l *Lease) Key() string { return l.key }

// Token returns the token of the claim. Claim with it again to make sure,
// right before the request, that the lease still holds.
func (l *Lease) Token() Token { return l.token }

// Lost is closed when the store said that the record is not ours any more, or
// when the lease could not be renewed and ends within a tenth of its length
// (two seconds at most): cancel the request. It is not closed by Drop, and
// needs a running Store.Run.
func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = make(chan struct{})
		if l.lost {
			close(l.told)
		}
	}
	return l.told
}

// AfterLost has f called, in a goroutine of its own, when Lost is closed or was. It takes the place of an f before; nil takes
// that back, unless it has been called by then.
func (l *Lease) AfterLost(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onLost = f
	if l.lost && f != nil {
		go f()
	}
}

// loseLocked ends the lease and tells those who want to know.
func (l *Lease) loseLocked() {
	l.over, l.lost = true, true
	if l.told != nil {
		close(l.told)
	}
	if l.onLost != nil {
		go l.onLost()
	}
}

// Left is how long nobody else can be granted the record. It counts on the
// local monotonic clock from when the claim or the latest renewal was sent, so
// that slow answers and a stopped process count against it. It may be
// negative.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.end)
}

// DeadlineLeft is how long the request may run: until then the record is not
// given away even when this process is gone. It counts like Left.
func (l *Lease) DeadlineLeft() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.deadline)
}

// Drop stops renewing. Call it when a success was recorded, or when the record
// is abandoned. It may be called more than once.
func (l *Lease) Drop() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.keeper.forget(l)
}

// refresh takes over the times of a claim or renewal sent at the given time.
// The latest one sent wins, whichever answer comes last: each set the lease to
// at least its own length from its own sending.
func (l *Lease) refresh(sent time.Time, deadline time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.extendLocked(sent)
	if d := sent.Add(deadline); d.After(l.deadline) {
		l.deadline = d
	}
	return true
}

func (l *Lease) extendLocked(sent time.Time) {
	if end := sent.Add(l.length); end.After(l.end) {
		l.end = end
		l.renewAt = sent.Add(l.length / 3)
		l.failing = false
	}
}

// retryLocked leaves a renewal that failed alone for a while.
func (l *Lease) retryLocked(now time.Time) {
	pause := max(min(l.length/12, time.Second), 10*time.Millisecond)
	l.renewAt = now.Add(pause)
	l.renewing, l.failing = false, true
}
