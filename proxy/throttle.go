package proxy

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// throttle hands out a queue's worker slots: how many messages may be worked on at once. After a start, and after the
// service was away, it begins with one and adds one for each message that ended done, so that a cold service is not hit
// by all at once (ramp). When one message after the other does not end done it falls back to one at a time, with growing
// pauses, until one does (brake): a wrong setting must not empty a queue into the dead letters. It is safe for concurrent
// use.
type throttle struct {
	most  int // slots when all is well
	after int // messages in a row that did not end done before it brakes; 0 never brakes

	mu      sync.Mutex
	limit   int        // slots for now
	taken   int        // slots in use
	waiting *list.List // of chan struct{}, closed when the one who waits has a slot; in order

	streak int  // messages in a row that did not end done
	proven bool // one has ended done since the start
	brake  *braking
	pauses backoff
	wake   *time.Timer // calls grant when the pause of the brake is over
}

// braking is why and how far a throttle brakes.
type braking struct {
	since time.Time
	until time.Time // nobody gets a slot before
	last  setback
}

const (
	// brakeUnproven is how many messages may fail before the first success since the start.
	brakeUnproven = 3
	brakeFirst    = 15 * time.Second
	brakeLast     = 5 * time.Minute
)

func newThrottle(most, after int) *throttle {
	return &throttle{most: most, after: after, limit: 1, waiting: list.New(), pauses: backoff{first: brakeFirst, last: brakeLast}}
}

// take waits for a slot, or returns the cause of ctx's end. The caller gives it back.
func (t *throttle) take(ctx context.Context) error {
	t.mu.Lock()
	if t.waiting.Len() == 0 && t.mayTakeLocked() {
		t.taken++
		t.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	place := t.waiting.PushBack(granted)
	t.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-granted: // both came
		t.taken--
		t.grantLocked()
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

// succeeded tells that a message ended done.
func (t *throttle) succeeded() (released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	released = t.brake != nil
	t.streak, t.proven, t.brake = 0, true, nil
	t.pauses.reset()
	t.limit = min(t.limit+1, t.most)
	t.grantLocked()
	return released
}

// failed tells that a message did not end done; braked says that the throttle begins to brake for it.
func (t *throttle) failed(s setback) (braked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streak++
	if t.after == 0 {
		return false
	}
	if t.brake == nil {
		if t.streak < t.after && (t.proven || t.streak < brakeUnproven) {
			return false
		}
		braked = true
		t.limit = 1
		t.brake = &braking{since: time.Now()}
	}
	t.brake.last = s
	pause := t.pauses.pause()
	t.brake.until = time.Now().Add(pause)
	if t.wake != nil {
		t.wake.Stop()
	}
	t.wake = time.AfterFunc(pause, t.grant)
	return braked
}

// restart begins the ramp anew: the service was away.
func (t *throttle) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = 1
}

// stop ends the timer of the brake. Whoever waits for a slot goes on waiting.
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

func (t *throttle) grantLocked() {
	for first := t.waiting.Front(); first != nil && t.mayTakeLocked(); first = t.waiting.Front() {
		t.taken++
		close(t.waiting.Remove(first).(chan struct{}))
	}
}

func (t *throttle) mayTakeLocked() bool {
	return t.taken < t.limit && (t.brake == nil || !time.Now().Before(t.brake.until))
}
