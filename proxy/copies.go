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
	keys map[string]chan struct{} // closed when the one that holds the key leaves
}

func newCopies() *copies { return &copies{keys: map[string]chan struct{}{}} }

// enter waits until no copy of key is in an attempt. The caller leaves when its attempt ends, not when its retries
// do. The error is the cause of ctx's end.
func (c *copies) enter(ctx context.Context, key string) error {
	for {
		c.mu.Lock()
		busy, taken := c.keys[key]
		if !taken {
			c.keys[key] = make(chan struct{})
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave lets the next copy of key in.
func (c *copies) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.keys[key])
	delete(c.keys, key)
}
