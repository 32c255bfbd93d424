package testkit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunkSize is how much of a stream is read at once.
const chunkSize = 32 << 10

// link is one connection through a FaultProxy: two sockets and a pump for each direction.
type link struct {
	proxy     *FaultProxy
	ends      [2]*net.TCPConn // receiver by Direction: ToServer's is the server's socket
	splitters [2]splitter     // by Direction; each used by its pump alone
	discard   [2]atomic.Bool  // by Direction: read on, forward nothing
	done      chan struct{}   // closed when the link is to end: nothing waits any longer
	doneOnce  sync.Once
}

func newLink(p *FaultProxy, client, server *net.TCPConn) *link {
	return &link{
		proxy:     p,
		ends:      [2]*net.TCPConn{ToServer: server, ToClient: client},
		splitters: p.protocol.splitters(),
		done:      make(chan struct{}),
	}
}

// run returns when both directions have ended.
func (l *link) run() {
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(ToServer) })
	pumps.Go(func() { l.pump(ToClient) })
	pumps.Wait()
	l.close()
}

// pump reads one direction until its sender ends it. The end is forwarded as it came: FIN as FIN, RST as RST.
func (l *link) pump(d Direction) {
	from, to := l.ends[1-d], l.ends[d]
	buffer := make([]byte, chunkSize)
	for {
		n, err := from.Read(buffer)
		switch {
		case n > 0 && l.ended():
			l.show(d, buffer[:n])
			abort(from) // as a system answers to data for a closed socket
		case n > 0:
			l.forward(d, buffer[:n])
		}
		if err == nil {
			continue
		}
		if l.pass(d) && !l.discard[d].Load() {
			passEnd(to, err)
		}
		return
	}
}

// passEnd tells the receiver how the sender ended. An end that the proxy itself made is no news: it told both ends.
func passEnd(to *net.TCPConn, cause error) {
	switch {
	case errors.Is(cause, io.EOF):
		_ = to.CloseWrite()
	case !errors.Is(cause, net.ErrClosed):
		abort(to)
	}
}

// forward sends a chunk on, holding it at each barrier that it meets.
func (l *link) forward(d Direction, chunk []byte) {
	sent := 0
	for _, unit := range l.show(d, chunk) {
		barrier := l.proxy.trip(unit)
		if barrier == nil {
			continue
		}
		start := max(sent, unit.start)
		l.write(d, chunk[sent:start])
		sent = start
		l.hold(d, barrier, unit)
	}
	l.write(d, chunk[sent:])
}

// show finds the messages in a chunk and lets the watchers see them.
func (l *link) show(d Direction, chunk []byte) []Unit {
	units := l.splitters[d].split(chunk)
	for i := range units {
		units[i].Direction = d
	}
	l.proxy.show(units)
	return units
}

// hold returns when the barrier lets go. After a drop the rest of the direction is discarded.
func (l *link) hold(d Direction, b *Barrier, u Unit) {
	b.held = bytes.Clone(u.Data)
	close(b.reached)
	select {
	case <-b.decided:
		if b.drop {
			l.cut()
		}
		l.write(d, b.before)
	case <-l.done:
	}
}

func (l *link) write(d Direction, data []byte) {
	if len(data) == 0 || !l.pass(d) || l.discard[d].Load() {
		return
	}
	if _, err := l.ends[d].Write(data); err == nil || l.discard[d].Load() || errors.Is(err, net.ErrClosed) {
		return
	}
	l.discard[d].Store(true)
	abort(l.ends[1-d]) // the receiver is gone: so it is for the sender
}

// pass waits out what is wrong with the direction now; it reports false when the link was ended meanwhile.
func (l *link) pass(d Direction) bool {
	stalled, delay := l.proxy.fault(d)
	for stalled != nil {
		select {
		case <-stalled:
		case <-l.done:
			return false
		}
		stalled, delay = l.proxy.fault(d)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !l.ended()
	case <-l.done:
		return false
	}
}

// cut sends FIN to the receivers of the directions, or ends the whole link so. The sockets stay readable until their
// owners end too: closing one with bytes unread would make an RST of the FIN (RFC 2525, section 2.17).
func (l *link) cut(directions ...Direction) {
	for _, d := range orBoth(directions) {
		l.discard[d].Store(true)
		_ = l.ends[d].CloseWrite()
	}
	if len(directions) == 0 {
		l.end()
	}
}

// reset sends RST to the receivers of the directions.
func (l *link) reset(directions ...Direction) {
	for _, d := range orBoth(directions) {
		l.discard[d].Store(true)
		abort(l.ends[d])
	}
	if len(directions) == 0 {
		l.end()
	}
}

// close ends the link at once.
func (l *link) close() {
	l.end()
	for _, end := range l.ends {
		_ = end.Close()
	}
}

func (l *link) end() { l.doneOnce.Do(func() { close(l.done) }) }

func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// abort closes a socket with RST.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
