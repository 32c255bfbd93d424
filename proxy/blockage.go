package proxy

import (
	"context"
	"sync"
	"time"
)

// blockage knows whether the broker blocks the publishers of a connection, as it does while a memory or disk alarm is
// on: it reads nothing more from a connection that publishes
// (https://www.rabbitmq.com/docs/connection-blocked). Safe for concurrent use.
type blockage struct {
	mu    sync.Mutex
	free  chan struct{} // closed while nothing is blocked
	since time.Time     // when it last ended
}

func newBlockage() *blockage {
	b := &blockage{free: make(chan struct{})}
	close(b.free)
	return b
}

func (b *blockage) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.activeLocked() {
		b.free = make(chan struct{})
	}
}

// end tells whether there was something to end.
func (b *blockage) end() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.activeLocked() {
		return false
	}
	b.since = time.Now()
	close(b.free)
	return true
}

func (b *blockage) active() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.activeLocked()
}

func (b *blockage) activeLocked() bool {
	select {
	case <-b.free:
		return false
	default:
		return true
	}
}

// wait returns once nothing is blocked, or with the cause of ctx's end.
func (b *blockage) wait(ctx context.Context) error {
	select {
	case <-b.over():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// over is closed while nothing is blocked.
func (b *blockage) over() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// outlasts waits until something has taken for longer than patience from now, and tells whether it has: false when done
// was closed before. The clock stands still during a blockage, and starts anew at the end of one.
func (b *blockage) outlasts(patience time.Duration, done <-chan struct{}) bool {
	began := time.Now()
	for {
		select {
		case <-b.over():
		case <-done:
			return false
		}
		left := b.left(began, patience)
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return false
		}
	}
}

// left is what is left of a patience that began then; all of it during a blockage.
func (b *blockage) left(began time.Time, patience time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.activeLocked() {
		return patience
	}
	if b.since.After(began) {
		began = b.since
	}
	return patience - time.Since(began)
}
