package proxy

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// throttle hands out a queue's worker slots: how many messages may be worked on at once. After a start, and after the
// service was away, it begins with one, and each message that ends done makes room for one more, so that a cold service is
// not hit by all at once (ramp). A service that takes its time gets twice as many ten times a second all the same, counted
// from the first message that comes then. When one message after the other does not end done it falls back
// to one at a time, with growing pauses, until one does (brake): a wrong setting must not empty a queue into the dead
// letters. It is safe for concurrent use.
type throttle struct {
	most  int // slots when all is well
	after int // messages in a row that did not end done before it brakes; 0 never brakes

	mu      sync.Mutex
	began   time.Time   // of the ramp; zero until somebody asks for a slot
	ramping bool        // fewer than most are handed out yet
	done    int         // messages that have ended done since the ramp began
	taken   int         // slots in use
	waiting *list.List  // of *waiter, in order
	wake    *time.Timer // calls grant when more may be handed out; nil while nobody waits for that

	streak int       // messages in a row that did not end done
	lost   time.Time // when the streak began with a request that ended without an answer
	unsent int       // how many of the latest were dead letters without a request
	proven bool      // one has ended done since the start
	brake  *braking
	pauses backoff
}

// waiter waits for a slot.
type waiter struct {
	granted chan struct{} // closed when there is a slot, or no use in waiting
	since   time.Time
	tooLong bool // no use in waiting; set before granted is closed
}

// braking is why and how far a throttle brakes.
type braking struct {
	since time.Time
	until time.Time // nobody gets a slot before
	last  setback
}

const (
	// brakeEarly is how many messages in a row may fail before the first success since the start, and how many may go to
	// the dead letters without a request: a setting is wrong, more likely than so many messages.
	brakeEarly = 3
	// unprovenMost is how many slots there are before the first success, so that no more fail at once.
	unprovenMost = 4
	brakeFirst   = 15 * time.Second
	brakeLast    = 5 * time.Minute
	rampStep     = 100 * time.Millisecond
	// heldMost is how long a delivery waits for a slot while the brake is on. It is found out at the end of a pause, so up
	// to brakeLast later, and half of the 30 minutes after which the broker takes deliveries back are left then.
	heldMost = longestHold - brakeLast
)

func newThrottle(most, after int) *throttle {
	return &throttle{
		most: most, after: after, ramping: most > 1, waiting: list.New(), pauses: backoff{first: brakeFirst, last: brakeLast},
	}
}

// take waits for a slot, or returns errHeldTooLong or the cause of ctx's end. The caller gives it back, and says since when it
// has been waiting.
func (t *throttle) take(ctx context.Context, since time.Time) error {
	t.mu.Lock()
	if t.brake != nil && time.Since(since) > heldMost {
		t.mu.Unlock()
		return errHeldTooLong
	}
	if limit, _ := t.limitLocked(); t.waiting.Len() == 0 && t.taken < limit {
		t.taken++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{granted: make(chan struct{}), since: since}
	place := t.waiting.PushBack(w)
	t.grantLocked()
	t.mu.Unlock()
	select {
	case <-w.granted:
		if w.tooLong {
			return errHeldTooLong
		}
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.granted: // both came
		if !w.tooLong {
			t.taken--
			t.grantLocked()
		}
	default:
		t.waiting.Remove(place)
	}
	return context.Cause(ctx)
}

// give gives a slot back.
func (t *throttle) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.grantLocked()
}

// succeeded tells that a message ended done; released says that the throttle no longer brakes.
func (t *throttle) succeeded() (released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	released = t.brake != nil
	if released {
		t.brake = nil
		t.pauses.reset()
		t.rampLocked()
	}
	t.streak, t.unsent = 0, 0
	if t.ramping && !released {
		t.done++
	}
	if !t.proven || t.ramping || released {
		t.proven = true
		t.grantLocked()
	}
	return released
}

// failed tells that a message did not end done; braked says that the throttle begins to brake for it.
func (t *throttle) failed(s setback) (braked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	switch {
	case !s.cutOff():
	case t.streak == 0:
		t.lost = now
	case t.proven && s.began.Before(t.lost):
		return false // a restart of a service that worked is one setback, however many requests it ends
	}
	t.streak++
	t.unsent++
	if s.sent() {
		t.unsent = 0
	}
	if t.after == 0 {
		return false
	}
	switch {
	case t.brake == nil && t.streak < t.after && t.unsent < brakeEarly && (t.proven || t.streak < brakeEarly):
		return false
	case t.brake == nil:
		braked = true
		t.brake = &braking{since: now}
	case now.Before(t.brake.until): // it was under way when the pause began
		t.brake.last = s
		return false
	}
	t.brake.last = s
	t.brake.until = now.Add(t.pauses.pause())
	t.grantLocked()
	return braked
}

// holdsBack tells whether the brake is on and somebody who has a slot should not begin: it pauses, or another has one too.
func (t *throttle) holdsBack() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.brake != nil && (t.taken > 1 || time.Now().Before(t.brake.until))
}

// restart begins the ramp anew: the service is there, at first or again.
func (t *throttle) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rampLocked()
}

func (t *throttle) rampLocked() { t.began, t.ramping, t.done = time.Time{}, t.most > 1, 0 }

// stop ends the timer. Whoever waits for a slot goes on waiting.
func (t *throttle) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake != nil {
		t.wake.Stop()
	}
}

// state returns the brake, nil when it is off, and how many messages in a row did not end done.
func (t *throttle) state() (brake *braking, streak int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.brake == nil {
		return nil, t.streak
	}
	copied := *t.brake
	return &copied, t.streak
}

func (t *throttle) grant() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grantLocked()
}

// grantLocked hands slots to those who wait, and sets the timer for the others.
func (t *throttle) grantLocked() {
	if t.waiting.Len() == 0 {
		return
	}
	limit, next := t.limitLocked()
	for first := t.waiting.Front(); first != nil && t.taken < limit; first = t.waiting.Front() {
		t.taken++
		close(t.waiting.Remove(first).(*waiter).granted)
	}
	for first := t.waiting.Front(); t.brake != nil && first != nil && time.Since(first.Value.(*waiter).since) > heldMost; first = t.waiting.Front() {
		w := t.waiting.Remove(first).(*waiter)
		w.tooLong = true
		close(w.granted)
	}
	if t.waiting.Len() == 0 || next == 0 {
		return
	}
	if t.wake == nil {
		t.wake = time.AfterFunc(next, t.grant)
		return
	}
	t.wake.Reset(next)
}

// limitLocked is how many slots there are now, and how long until there are more; 0 is never by itself.
func (t *throttle) limitLocked() (limit int, next time.Duration) {
	if t.brake != nil {
		if left := time.Until(t.brake.until); left > 0 {
			return 0, left
		}
		return 1, 0
	}
	limit = t.most
	if t.ramping {
		if t.began.IsZero() {
			t.began = time.Now()
		}
		passed := time.Since(t.began)
		steps := min(int(passed/rampStep), 30)
		limit = min(max(1<<steps, 1+t.done), t.most)
		t.ramping = limit < t.most
		next = time.Duration(steps+1)*rampStep - passed
	}
	if !t.ramping {
		next = 0
	}
	// Before the first success those under way and those that have failed are few together.
	if few := max(unprovenMost-t.streak, 1); !t.proven && t.after > 0 && limit >= few {
		return few, 0
	}
	return limit, next
}
