package dedup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// dialer makes the connections to Redis and remembers them, so that those to a
// server that is not the right one any more can be given up before anything is
// sent on them.
type dialer struct {
	tls *TLSFiles // nil: plain text

	mu   sync.Mutex
	open map[*connection]struct{}
}

func newDialer(files *TLSFiles) *dialer {
	return &dialer{tls: files, open: map[*connection]struct{}{}}
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: dialTimeout}
	conn, err := plain.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.tls != nil {
		if conn, err = d.secure(ctx, conn, address); err != nil {
			return nil, err
		}
	}
	c := &connection{Conn: conn, dialer: d, address: address}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[c] = struct{}{}
	return c, nil
}

func (d *dialer) secure(ctx context.Context, plain net.Conn, address string) (net.Conn, error) {
	config, err := d.tls.Load(address)
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	secured := tls.Client(plain, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("tls handshake: %w", err)
	}
	return secured, nil
}

// condemn gives up the connections to an address, or all for "". The pool
// drops each when it would be used next; what is in flight on it goes on.
func (d *dialer) condemn(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if address == "" || c.address == address {
			c.condemned.Store(true)
		}
	}
}

// connection is one that its dialer remembers until it is closed.
type connection struct {
	net.Conn
	dialer    *dialer
	address   string
	condemned atomic.Bool
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

var errCondemned = errors.New("the connection leads to a server that is not to be used any more")

// SyscallConn is what the pool asks for before it hands out an idle connection,
// to see whether the server has closed it; an error makes it drop the
// connection and take another.
func (c *connection) SyscallConn() (syscall.RawConn, error) {
	if c.condemned.Load() {
		return nil, errCondemned
	}
	if conn, ok := c.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return unseen{}, nil
}

// unseen looks at nothing: on a TLS connection bytes that wait in the socket
// say little, since they may be the protocol's own.
type unseen struct{}

func (unseen) Control(func(uintptr)) error    { return nil }
func (unseen) Read(func(uintptr) bool) error  { return nil }
func (unseen) Write(func(uintptr) bool) error { return nil }
