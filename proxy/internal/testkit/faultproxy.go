package testkit

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Direction is the way that bytes take through a FaultProxy.
type Direction uint8

const (
	ToServer Direction = iota
	ToClient
)

func (d Direction) String() string { return [...]string{"to-server", "to-client"}[d] }

// FaultProxy forwards TCP connections from a loopback address to a server, and spoils them on demand. Faults act on all
// connections, the open ones and those to come, until they are taken back. All methods are safe for concurrent use.
type FaultProxy struct {
	Addr string // 127.0.0.1:PORT, the same over Refuse and Reopen

	protocol Protocol
	port     port

	mu         sync.Mutex
	target     string
	listener   net.Listener       // nil while refusing
	links      map[*link]struct{} // open connections
	connecting int                // connections that the server may see already, not in links yet
	connected  *sync.Cond         // connecting has fallen; uses mu
	faults     [2]directionFaults // by Direction
	barriers   []*Barrier         // armed, not reached
	watchers   [2][]func(Unit)    // by Direction
	closed     bool
	work       sync.WaitGroup // accept loop and links
}

// directionFaults is what is wrong with one direction. Guarded by FaultProxy.mu.
type directionFaults struct {
	stalled chan struct{} // nil: not stalled; closed by Unstall
	delay   time.Duration
}

// NewFaultProxy listens, and connects to target anew for each connection. The protocol tells barriers where a message
// begins and ends.
func NewFaultProxy(target string, protocol Protocol) (*FaultProxy, error) {
	reserved, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("open fault proxy: %w", err)
	}
	p := &FaultProxy{
		Addr: reserved.address(), target: target, protocol: protocol, port: reserved, links: map[*link]struct{}{},
	}
	p.connected = sync.NewCond(&p.mu)
	if err := p.Reopen(); err != nil {
		reserved.release()
		return nil, err
	}
	return p, nil
}

// Cut ends all open connections with FIN, or only the given directions of them: the receiver of that direction sees end
// of file and may go on sending.
func (p *FaultProxy) Cut(directions ...Direction) {
	for _, l := range p.openLinks() {
		l.cut(directions...)
	}
}

// Reset ends all open connections with RST. With a direction, only the receiver of that direction is told; the other
// end is left with a connection that looks alive.
func (p *FaultProxy) Reset(directions ...Direction) {
	for _, l := range p.openLinks() {
		l.reset(directions...)
	}
}

// Stall stops forwarding: bytes, and the ends of connections, stay on the way until Unstall. New connections are
// accepted and stalled too.
func (p *FaultProxy) Stall(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range orBoth(directions) {
		if p.faults[d].stalled == nil {
			p.faults[d].stalled = make(chan struct{})
		}
	}
}

// Unstall forwards what Stall held, and all that follows.
func (p *FaultProxy) Unstall(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range orBoth(directions) {
		if p.faults[d].stalled != nil {
			close(p.faults[d].stalled)
			p.faults[d].stalled = nil
		}
	}
}

// Delay waits that long before each chunk is forwarded; zero takes it back.
func (p *FaultProxy) Delay(delay time.Duration, directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range orBoth(directions) {
		p.faults[d].delay = delay
	}
}

// Refuse closes the listener: new connections are refused by the system. Open ones go on.
func (p *FaultProxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// Retarget makes the connections to come go to another server.
func (p *FaultProxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Reopen undoes Refuse.
func (p *FaultProxy) Reopen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("reopen fault proxy: it is closed")
	}
	if p.listener != nil {
		return nil
	}
	listener, err := listen(p.Addr)
	if err != nil {
		return fmt.Errorf("reopen fault proxy: %w", err)
	}
	p.listener = listener
	p.work.Go(func() { p.accept(listener) })
	return nil
}

// Connections tells how many connections are open.
func (p *FaultProxy) Connections() int { return len(p.openLinks()) }

// Close ends everything and waits for it. Barriers that were not reached stay so.
func (p *FaultProxy) Close() error {
	p.Refuse()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, l := range p.openLinks() {
		l.close()
	}
	p.work.Wait()
	p.port.release()
	return nil
}

func (p *FaultProxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // Refuse or Close
		}
		p.work.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve forwards one connection until both directions have ended. A server that cannot be reached is a reset to the
// client, as a server that dies between accept and answer would be.
func (p *FaultProxy) serve(client *net.TCPConn) {
	l := p.connect(client)
	if l == nil {
		p.showFirst(client)
		abort(client)
		return
	}
	l.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// showFirst lets the watchers see what a client sends that has no server. Clients of all protocols here speak first; one that
// finds no time for that on a busy machine gets some.
func (p *FaultProxy) showFirst(client *net.TCPConn) {
	_ = client.SetReadDeadline(time.Now().Add(time.Second))
	chunk := make([]byte, chunkSize)
	n, _ := client.Read(chunk)
	units := p.protocol.splitters()[ToServer].split(chunk[:n])
	p.show(units) // ToServer is the zero value of their direction
}

// connect returns the link to the server, or nil when there is none.
func (p *FaultProxy) connect(client *net.TCPConn) *link {
	p.mu.Lock()
	p.connecting++
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connecting--
	p.connected.Broadcast()
	if err != nil {
		return nil
	}
	l := newLink(p, client, server.(*net.TCPConn))
	p.links[l] = struct{}{}
	if p.closed {
		l.close()
	}
	return l
}

// openLinks first waits for connections in the making: a fault must not miss one that the server has accepted.
func (p *FaultProxy) openLinks() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.connecting > 0 {
		p.connected.Wait()
	}
	return slices.Collect(maps.Keys(p.links))
}

// fault returns what a chunk in this direction has to wait for now.
func (p *FaultProxy) fault(d Direction) (stalled <-chan struct{}, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[d].stalled, p.faults[d].delay
}

// Watch calls see with every message to come in a direction, on all connections, one at a time, before any fault touches
// it. see must neither keep the message's bytes nor call the proxy.
func (p *FaultProxy) Watch(d Direction, see func(Unit)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[d] = append(p.watchers[d], see)
}

func (p *FaultProxy) show(units []Unit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range units {
		for _, see := range p.watchers[u.Direction] {
			see(u)
		}
	}
}

// trip disarms and returns the barrier that matches the unit, if there is one.
func (p *FaultProxy) trip(u Unit) *Barrier {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.barriers {
		if b.direction == u.Direction && b.match(u) {
			p.barriers = slices.Delete(p.barriers, i, i+1)
			return b
		}
	}
	return nil
}

func orBoth(directions []Direction) []Direction {
	if len(directions) == 0 {
		return []Direction{ToServer, ToClient}
	}
	return directions
}
