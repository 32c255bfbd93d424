package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// watchedConn is a connection on which a silent peer is noticed. The broker sends a heartbeat after half an interval
// without other traffic (https://www.rabbitmq.com/docs/heartbeats#heartbeats-interval), so that a whole interval of
// silence means that it is gone. The AMQP library waits for longer, and a write that stands still would hold up even
// its own end of the connection.
//
// Deadlines are about the peer, not about us: a process that was stopped, or had no processor, takes what has come in
// the meantime before it gives up.
//
// Until the library has finished the handshake, and once it closes the connection, deadlines are what it sets.
type watchedConn struct {
	net.Conn
	patience time.Duration
	writes   bool   // a write that stands still for patience is the end too
	greeted  func() // called once, at the first bytes from the peer; only Read touches it

	mu       sync.Mutex
	watching bool
	readBy   time.Time // the deadlines as they are set, while watching
	writeBy  time.Time
}

// tenth of patience is how long the peer has after a deadline, and how close to patience a deadline may come before it
// is moved: not each read and write moves it.
func (c *watchedConn) tenth() time.Duration { return c.patience / 10 }

// SetDeadline is how the library begins (with no time, after the handshake) and ends.
func (c *watchedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = t.IsZero()
	c.readBy, c.writeBy = time.Time{}, time.Time{}
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline is how the library moves its own, longer deadline, after each frame: Read keeps a better one.
func (c *watchedConn) SetReadDeadline(time.Time) error { return nil }

// Read implements net.Conn. The library calls it from one goroutine.
func (c *watchedConn) Read(p []byte) (int, error) {
	c.keep(&c.readBy, c.Conn.SetReadDeadline)
	n, err := c.Conn.Read(p)
	if n == 0 && c.isLate(err) {
		c.grant(&c.readBy, c.Conn.SetReadDeadline)
		if n, err = c.Conn.Read(p); n == 0 && c.isLate(err) {
			err = fmt.Errorf("no heartbeat and nothing else from the broker for %v", c.patience)
		}
	}
	if err != nil {
		c.freeWriters()
	}
	if n > 0 && c.greeted != nil {
		c.greeted()
		c.greeted = nil
	}
	return n, err
}

// Write implements net.Conn. The library calls it from one goroutine at a time.
func (c *watchedConn) Write(p []byte) (int, error) {
	if !c.writes {
		return c.Conn.Write(p)
	}
	c.keep(&c.writeBy, c.Conn.SetWriteDeadline)
	written, granted := 0, false
	for {
		n, err := c.Conn.Write(p[written:])
		written += n
		switch {
		case err == nil || !c.isLate(err):
			return written, err
		case n > 0:
			c.keep(&c.writeBy, c.Conn.SetWriteDeadline) // slow, but not still
			granted = false
		case granted:
			return written, fmt.Errorf("the broker took no data for %v", c.patience)
		default:
			c.grant(&c.writeBy, c.Conn.SetWriteDeadline)
			granted = true
		}
	}
}

// freeWriters ends writes under way: the library waits for them before it closes the connection.
func (c *watchedConn) freeWriters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = false
	_ = c.Conn.SetWriteDeadline(time.Unix(1, 0))
}

// keep moves a deadline that has come close.
func (c *watchedConn) keep(by *time.Time, set func(time.Time) error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && by.Sub(now) < c.patience {
		*by = now.Add(c.patience + c.tenth())
		_ = set(*by)
	}
}

// grant gives the last chance.
func (c *watchedConn) grant(by *time.Time, set func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching {
		*by = time.Now().Add(c.tenth())
		_ = set(*by)
	}
}

// isLate tells whether a deadline of ours has passed.
func (c *watchedConn) isLate(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watching
}
