package dedup

import (
	"context"
	"sync"
	"time"
)

// keeper renews all leases of the process. Its one goroutine, run, decides when
// a lease is renewed and when it is lost; renewals themselves are calls like
// all others and share round trips with them, so that a slow store never keeps
// the keeper from noticing that a lease runs out.
type keeper struct {
	committer *committer
	metrics   *metrics
	wake      chan struct{} // a lease may be due before the keeper looks again

	mu     sync.Mutex
	leases map[Token]*Lease
	lookAt time.Time // when run looks again; zero: it waits for a lease
}

func newKeeper(c *committer, m *metrics) *keeper {
	return &keeper{committer: c, metrics: m, wake: make(chan struct{}, 1), leases: map[Token]*Lease{}}
}

// claimed returns the lease for a granted claim: the one that the token has
// while it lives, else a new one.
func (k *keeper) claimed(op *operation, sent time.Time, length, deadline time.Duration) *Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.leases[op.token]; l != nil && l.key == op.key && l.length == length && l.refresh(sent, deadline) {
		return l
	}
	l := &Lease{
		key: op.key, token: op.token, length: length, retention: op.retention,
		keeper: k,
		end:    sent.Add(length), deadline: sent.Add(deadline), renewAt: sent.Add(length / 3),
	}
	k.leases[op.token] = l
	if k.lookAt.IsZero() || l.renewAt.Before(k.lookAt) {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
	return l
}

func (k *keeper) forget(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[l.token] == l {
		delete(k.leases, l.token)
	}
}

// run looks after the leases until the context ends.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		if next := k.look(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// look goes over all leases once and returns when to look again.
func (k *keeper) look() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.lookAt = time.Time{}
	for token, l := range k.leases {
		next, over := k.tend(l, now)
		if over {
			delete(k.leases, token)
			continue
		}
		if k.lookAt.IsZero() || next.Before(k.lookAt) {
			k.lookAt = next
		}
	}
	return k.lookAt
}

// tend renews a lease that is due, or gives it up, and returns when to look
// after it again. Lost comes first: a process that was stopped for longer than
// the lease must not renew what another may hold by now.
func (k *keeper) tend(l *Lease, now time.Time) (next time.Time, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lostAt := l.end.Add(-lostMargin(l.length))
	switch {
	case l.over:
		return now, true
	case !now.Before(lostAt):
		k.loseLocked(l)
		return now, true
	case l.renewing:
		return lostAt, false
	}
	due := l.renewAt
	if !l.failing {
		due = due.Add(-l.length / 12) // due soon goes along now: fewer, larger groups
	}
	if !now.Before(due) {
		k.renewLocked(l, now)
		return lostAt, false
	}
	return earlier(l.renewAt, lostAt), false
}

func (k *keeper) renewLocked(l *Lease, now time.Time) {
	renewal := &call{
		op: operation{
			word: wordRenew, key: l.key, token: l.token,
			lease: milliseconds(l.length), retention: l.retention,
		},
		sent:   now,
		finish: func(c *call) { k.renewed(l, c) },
	}
	l.renewing = true
	if err := k.committer.submit(renewal); err != nil {
		l.retryLocked(now)
	}
}

// renewed takes a renewal's answer, on the committer's goroutine.
func (k *keeper) renewed(l *Lease, c *call) {
	k.metrics.count(wordRenew, c.err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = false
	settlement, ok := c.answer.settlement() // not ok when there is an error
	switch {
	case l.over:
		return
	case !ok:
		l.retryLocked(time.Now())
	case settlement == Applied:
		l.extendLocked(c.sent)
	default:
		k.loseLocked(l)
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) loseLocked(l *Lease) {
	l.loseLocked()
	k.metrics.leaseLost.Inc()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
