package forward

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

var (
	// errOver refuses a write for a request that was given up.
	errOver = errors.New("request was given up")
	// errStale refuses to begin a request on a connection that the service closed,
	// or on which it sent something before it was asked.
	errStale = errors.New("connection closed by the service")
)

// attempt is one request and what is known of it: whether a byte of it may have
// left. Once it is over no byte of it leaves any more.
type attempt struct {
	permit func() error // asked right before the first byte; nil: always

	mu      sync.Mutex
	began   bool
	over    bool
	refused error        // what permit said, once it said no
	owner   *guardedConn // the connection it began on
}

// begin marks that the first byte is about to leave by g.
func (a *attempt) begin(g *guardedConn) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || (a.began && a.owner != g) {
		return errOver
	}
	if a.permit != nil && !a.began {
		if a.refused = a.permit(); a.refused != nil {
			a.over = true
			return errOver
		}
	}
	a.began, a.owner = true, g
	return nil
}

// refusal is what permit said when it refused the request.
func (a *attempt) refusal() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// resume is asked before every further byte.
func (a *attempt) resume() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return errOver
	}
	return nil
}

// retract takes begin back: the operating system took none of the bytes. It is
// too late once the attempt is over, as its outcome is out.
func (a *attempt) retract() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.began = false
	}
}

// hasBegun says whether a byte may have left so far.
func (a *attempt) hasBegun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.began
}

// end stops the attempt for good and says whether a byte of it may have left.
func (a *attempt) end() (began bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.began
}

// guardedConn is a connection that knows which request it carries and whether
// that request has begun. Over TLS it lies above the encryption, so that neither
// handshake nor closing alert counts as a byte of the request.
type guardedConn struct {
	net.Conn
	secure  bool            // Conn is TLS: a failed write may have sent bytes
	raw     syscall.RawConn // of the socket, to look at what it holds; nil if it has none
	mu      sync.Mutex      // guards what follows; never held while reading or writing
	current *attempt        // the request that may write; nil before the first
	reused  bool            // a request was carried before the current one
	writing bool            // the current request has begun here
	deaf    bool            // a write failed after the current request had begun
	broken  bool            // no further request may begin here
}

// guard wraps conn, whose socket is socket; they differ over TLS.
func guard(conn, socket net.Conn) *guardedConn {
	g := &guardedConn{Conn: conn, secure: conn != socket}
	if s, ok := socket.(syscall.Conn); ok {
		// Without it the guard cannot look ahead, but still counts bytes.
		g.raw, _ = s.SyscallConn()
	}
	return g
}

// arm makes a the request that may write.
func (g *guardedConn) arm(a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reused = g.current != nil
	g.current, g.writing, g.deaf = a, false, false
}

// Write lets a byte out only for a request that is armed and not over.
//
// A write that fails after the request has begun is reported as a success: the
// service may have answered before it closed (413 while the body is still being
// sent), net/http would prefer the write error to that answer, and the reading
// side finds out in either case, as the answer or as the end of the connection.
func (g *guardedConn) Write(p []byte) (int, error) {
	a, first, err := g.prepare()
	if err != nil {
		return 0, err
	}
	if a == nil {
		return len(p), nil
	}
	n, err := g.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
	if first && n == 0 && !g.secure {
		a.retract()
		return 0, err
	}
	g.deaf = true
	return len(p), nil
}

// prepare says for which attempt bytes may be written and whether they are its
// first. No attempt and no error means that bytes are to be thrown away.
func (g *guardedConn) prepare() (a *attempt, first bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.current == nil:
		return nil, false, errOver
	case g.deaf:
		return nil, false, nil
	case g.writing:
		return g.current, false, g.current.resume()
	}
	if g.broken || g.staleLocked() {
		g.broken = true
		return nil, false, errStale
	}
	if err := g.current.begin(g); err != nil {
		return nil, false, err
	}
	g.writing = true
	return g.current, true, nil
}

// staleLocked looks into the socket: a service that closes an idle connection
// does so at any time, and a request written after that is lost without anyone
// knowing whether it was read. Looking right before the first byte leaves only
// what is under way at that moment. Bytes that wait there are no answer to a
// request that was not sent. Over TLS they may be what ends the handshake
// (session tickets, RFC 8446, 4.6.1) unless the connection was used before.
func (g *guardedConn) staleLocked() bool {
	if g.raw == nil {
		return false
	}
	state := peek(g.raw)
	return state == socketClosed || (state == socketHasData && (!g.secure || g.reused))
}

// Read notes what spoils the connection for the next request: an error, or bytes
// that came before the request that would have asked for them.
func (g *guardedConn) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || (n > 0 && !g.writing) {
		g.broken = true
	}
	return n, err
}
