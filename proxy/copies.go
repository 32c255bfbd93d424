package proxy

import (
	"context"
	"sync"
)

// copies lets copies of one message that meet in this process take turns, so that they do not ask the store about
// each other. It is no guarantee, that is the claim's job: a copy that got its turn still claims, and is compared and
// judged there. Safe for concurrent use.
type copies struct {
	mu   sync.Mutex
	keys map[string]chan struct{} // closed when the one that holds the key leaves; nil: nobody waits for that
}

func newCopies() *copies { return &copies{keys: map[string]chan struct{}{}} }

// tryEnter is enter, when no copy of key is in an attempt; false is that one is.
func (c *copies) tryEnter(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.keys[key]; taken {
		return false
	}
	c.keys[key] = nil
	return true
}

// enter waits until no copy of key is in an attempt. The caller leaves when its attempt ends, not when its retries
// do. The error is the cause of ctx's end.
func (c *copies) enter(ctx context.Context, key string) error {
	for {
		busy := c.enterOrWatch(key)
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// enterOrWatch returns nil when the caller has entered, else what is closed when the one before leaves.
func (c *copies) enterOrWatch(key string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy, taken := c.keys[key]
	switch {
	case !taken:
		c.keys[key] = nil
		return nil
	case busy == nil:
		busy = make(chan struct{})
		c.keys[key] = busy
	}
	return busy
}

// leave lets the next copy of key in.
func (c *copies) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if busy := c.keys[key]; busy != nil {
		close(busy)
	}
	delete(c.keys, key)
}
