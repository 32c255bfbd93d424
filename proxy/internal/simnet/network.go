package simnet

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Network connects hosts, by name, with servers, by address. Safe for concurrent use.
type Network struct {
	latency func(way int) func() time.Duration

	mu      sync.Mutex
	servers map[string]func(net.Conn)
	refused map[string]bool
	frozen  map[string]chan struct{} // by host; closed when it goes on
	dead    map[string]bool
	legs    []*Leg
	count   int
	work    sync.WaitGroup
}

// New returns a network. Each direction of a connection is a way, numbered, with latencies of its own.
func New(latency func(way int) func() time.Duration) *Network {
	return &Network{latency: latency, servers: map[string]func(net.Conn){}, refused: map[string]bool{}, frozen: map[string]chan struct{}{}, dead: map[string]bool{}}
}

// Serve has a server at an address: it is called in a goroutine of its own for each connection.
func (n *Network) Serve(address string, serve func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[address] = serve
}

// Wait waits until every server is done with its connections.
func (n *Network) Wait() { n.work.Wait() }

// Refuse has connections to an address refused, or no more.
func (n *Network) Refuse(address string, refused bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused[address] = refused
}

// Dial connects a host with an address.
func (n *Network) Dial(ctx context.Context, host, to string) (net.Conn, error) {
	if err := n.thaw(ctx, host); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.count += 2
	number := n.count
	n.mu.Unlock()
	forth := n.latency(number)
	timer := time.NewTimer(forth())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	serve := n.servers[to]
	if serve == nil || n.refused[to] || n.dead[host] {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(to), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	there, back := newPipe(forth), newPipe(n.latency(number+1))
	leg := &Leg{Host: host, To: to, there: there, back: back}
	n.legs = append(slices.DeleteFunc(n.legs, (*Leg).over), leg)
	n.work.Go(func() {
		serve(&Conn{in: there, out: back, local: address(to), remote: address(host)})
	})
	return &Conn{in: back, out: there, local: address(host), remote: address(to)}, nil
}

// thaw waits while a host is frozen.
func (n *Network) thaw(ctx context.Context, host string) error {
	for {
		n.mu.Lock()
		frozen := n.frozen[host]
		n.mu.Unlock()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Thaw waits while a host is frozen, for what reaches others in another way than by a connection.
func (n *Network) Thaw(ctx context.Context, host string) error { return n.thaw(ctx, host) }

// Freeze stalls what a host sends and gets, but for what it sends to the addresses that are excepted, until the function that
// is returned is called.
func (n *Network) Freeze(host string, except ...string) (goOn func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen[host] != nil {
		return func() {}
	}
	frozen := make(chan struct{})
	n.frozen[host] = frozen
	stall := func(on bool) {
		for _, leg := range n.legs {
			if leg.Host == host {
				leg.stall(on, on && !slices.Contains(except, leg.To))
			}
		}
	}
	stall(true)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.frozen, host)
		close(frozen)
		stall(false)
	}
}

// Kill ends a host: what it sent still arrives, nothing else does, and it connects no more.
func (n *Network) Kill(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[host] = true
	for _, leg := range n.legs {
		if leg.Host == host {
			leg.die()
		}
	}
}

// Legs are the connections between a host and an address; empty is any.
func (n *Network) Legs(host, to string) []*Leg {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []*Leg
	for _, leg := range n.legs {
		if !leg.over() && (host == "" || leg.Host == host) && (to == "" || leg.To == to) {
			found = append(found, leg)
		}
	}
	return found
}

// Leg is one connection.
type Leg struct {
	Host, To    string
	there, back *pipe
}

func (l *Leg) over() bool {
	over := true
	for _, p := range []*pipe{l.there, l.back} {
		p.mu.Lock()
		over = over && p.closed
		p.mu.Unlock()
	}
	return over
}

// Cut ends the connection for both ends at once; what is under way is lost.
func (l *Leg) Cut() {
	for _, p := range []*pipe{l.there, l.back} {
		p.with(func() {
			p.chunks, p.closed = nil, true
			if p.broken == nil {
				p.broken = syscall.ECONNRESET
			}
		})
	}
}

// Lose drops what is written from now on, to either side: the connection seems alive.
func (l *Leg) Lose() {
	l.there.with(func() { l.there.severed = true })
	l.back.with(func() { l.back.severed = true })
}

// Stall keeps back what is written, until it is called with false.
func (l *Leg) Stall(on bool) { l.stall(on, on) }

func (l *Leg) stall(back, there bool) {
	l.back.with(func() { l.back.stalled = back })
	l.there.with(func() { l.there.stalled = there })
}

// die is the end of the host.
func (l *Leg) die() {
	l.there.end()
	l.back.with(func() {
		l.back.chunks, l.back.severed = nil, true
		if l.back.broken == nil {
			l.back.broken = net.ErrClosed
		}
	})
}
