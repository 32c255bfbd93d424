package simnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe is one direction of a connection: bytes arrive in order, each write after a latency of its own.
type pipe struct {
	latency func() time.Duration
	wake    chan struct{} // to the reader

	mu       sync.Mutex
	chunks   []chunk
	last     time.Time // when the latest write arrives
	closed   bool      // no more is written: the reader finds the end after the rest
	broken   error     // of the reader, at once
	severed  bool      // what is written vanishes
	stalled  bool      // nothing arrives
	deadline time.Time // of reads
}

type chunk struct {
	due  time.Time
	data []byte
}

func newPipe(latency func() time.Duration) *pipe {
	return &pipe{latency: latency, wake: make(chan struct{}, 1)}
}

func (p *pipe) with(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write never waits.
func (p *pipe) write(data []byte) (n int, err error) {
	p.with(func() {
		switch {
		case p.closed || p.broken != nil && !p.severed:
			err = syscall.EPIPE
			return
		case p.severed:
		default:
			p.addLocked(append([]byte(nil), data...))
		}
		n = len(data)
	})
	return n, err
}

// addLocked has data arrive; none is the end.
func (p *pipe) addLocked(data []byte) {
	due := time.Now().Add(p.latency())
	if due.Before(p.last) {
		due = p.last
	}
	p.last = due
	p.chunks = append(p.chunks, chunk{due, data})
}

// end is the orderly close by the writer.
func (p *pipe) end() {
	p.with(func() {
		if !p.closed {
			p.closed = true
			if !p.severed {
				p.addLocked(nil)
			}
		}
	})
}

// read waits for what arrives.
func (p *pipe) read(buffer []byte) (int, error) {
	for {
		n, wait, err := p.tryRead(buffer)
		if n > 0 || err != nil || len(buffer) == 0 {
			return n, err
		}
		if wait < 0 {
			<-p.wake
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryRead reads what is there. wait is when to look again; negative: only when woken.
func (p *pipe) tryRead(buffer []byte) (n int, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	wait = -1
	switch {
	case p.broken != nil:
		return 0, 0, p.broken
	case !p.deadline.IsZero() && !now.Before(p.deadline):
		return 0, 0, os.ErrDeadlineExceeded
	case !p.deadline.IsZero():
		wait = p.deadline.Sub(now)
	}
	if p.stalled || len(p.chunks) == 0 {
		return 0, wait, nil
	}
	first := &p.chunks[0]
	if until := first.due.Sub(now); until > 0 {
		if wait < 0 || until < wait {
			wait = until
		}
		return 0, wait, nil
	}
	if first.data == nil {
		return 0, 0, io.EOF
	}
	n = copy(buffer, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		p.chunks = p.chunks[1:]
	}
	return n, 0, nil
}

// Conn is one end of a connection.
type Conn struct {
	in, out *pipe
	local   net.Addr
	remote  net.Addr
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn. It never waits.
func (c *Conn) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return c.out.write(b)
}

// Close implements net.Conn: what was written still arrives.
func (c *Conn) Close() error {
	c.in.with(func() {
		if c.in.broken == nil {
			c.in.broken = net.ErrClosed
		}
	})
	c.out.end()
	return nil
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.with(func() { c.in.deadline = t })
	return nil
}

// SetWriteDeadline implements net.Conn: no write waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
