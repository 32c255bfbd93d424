package testkit

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Match recognises the message that a barrier waits for. It is called with every message of every connection in the
// barrier's direction, one at a time, and must not keep the message's bytes.
type Match func(Unit) bool

// Barrier holds a connection at a chosen message, once: the first message that matches, and all that follows it in its
// direction on its connection, is held from Reached until Release, Insert or Drop. Other connections, and the other direction,
// go on. The server does not learn that a client was killed meanwhile before Release or Drop.
type Barrier struct {
	proxy     *FaultProxy
	direction Direction
	match     Match
	reached   chan struct{}
	decided   chan struct{}
	once      sync.Once
	held      []byte // a copy of the message; read after reached
	drop      bool   // read after decided
	before    []byte // read after decided
}

// Barrier arms a barrier. Bytes that were forwarded already do not reach it.
func (p *FaultProxy) Barrier(direction Direction, match Match) *Barrier {
	b := &Barrier{
		proxy: p, direction: direction, match: match, reached: make(chan struct{}), decided: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.barriers = append(p.barriers, b)
	return b
}

// Reached is closed when the message is held.
func (b *Barrier) Reached() <-chan struct{} { return b.reached }

// Wait returns nil when the message is held.
func (b *Barrier) Wait(ctx context.Context) error {
	select {
	case <-b.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for barrier %s: %w", b.direction, context.Cause(ctx))
	}
}

// Held is the message that is held. It may be asked for after Reached only.
func (b *Barrier) Held() []byte { return b.held }

// Release forwards what is held. Before Reached it disarms the barrier.
func (b *Barrier) Release() { b.decide(false, nil) }

// Insert forwards a message of the test's own, and then what is held: to the receiver both come from the sender. Before
// Reached it disarms the barrier.
func (b *Barrier) Insert(message []byte) { b.decide(false, message) }

// Drop swallows what is held and cuts the connection (FIN to both ends). Before Reached it disarms the barrier.
func (b *Barrier) Drop() { b.decide(true, nil) }

// decide acts once; later calls change nothing.
func (b *Barrier) decide(drop bool, before []byte) {
	b.once.Do(func() {
		b.proxy.mu.Lock()
		defer b.proxy.mu.Unlock()
		b.proxy.barriers = slices.DeleteFunc(b.proxy.barriers, func(other *Barrier) bool { return other == b })
		b.drop, b.before = drop, before
		close(b.decided)
	})
}
