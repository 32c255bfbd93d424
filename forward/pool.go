package forward

import (
	"sync"
	"time"
)

// idleTimeout is how long an unused connection is kept. It has to be shorter
// than the service's own: a service that closes first may do so just when the
// next request is on its way, and that request's outcome is then unknown. The
// shortest common default is 2 s (gunicorn), then 5 s (Node, Apache, uvicorn).
// A new connection to a neighbour costs some 50 µs, so little is lost. A service
// that is set to 1 s counts from when it answered, which is a little earlier.
const idleTimeout = 900 * time.Millisecond

// pool keeps connections between requests. Safe for concurrent use.
type pool struct {
	most int // how many

	mu    sync.Mutex
	idle  []*conn // the latest last
	sweep *time.Timer
	armed bool // sweep will be called
}

// take returns the connection that was used last, or nil when there is none: the others have time to grow old.
func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	k := p.idle[last]
	p.idle[last], p.idle = nil, p.idle[:last]
	if time.Since(k.idleSince) > idleTimeout { // and the others are older
		_ = k.Close()
		p.closeLocked(len(p.idle))
		return nil
	}
	return k
}

// put keeps a connection, or closes it when there are enough.
func (p *pool) put(k *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.most {
		_ = k.Close()
		return
	}
	k.idleSince = time.Now()
	p.idle = append(p.idle, k)
	p.armLocked(idleTimeout)
}

func (p *pool) armLocked(d time.Duration) {
	switch {
	case p.armed:
		return
	case p.sweep == nil:
		p.sweep = time.AfterFunc(d, p.closeOld)
	default:
		p.sweep.Reset(d)
	}
	p.armed = true
}

// closeOld closes what has been idle for too long.
func (p *pool) closeOld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].idleSince) >= idleTimeout {
		old++
	}
	p.closeLocked(old)
	if len(p.idle) > 0 {
		p.armLocked(idleTimeout - time.Since(p.idle[0].idleSince))
	}
}

// drop closes all connections that are idle.
func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked(len(p.idle))
	if p.armed {
		p.armed = !p.sweep.Stop()
	}
}

// closeLocked closes the n oldest.
func (p *pool) closeLocked(n int) {
	for _, k := range p.idle[:n] {
		_ = k.Close()
	}
	rest := copy(p.idle, p.idle[n:])
	clear(p.idle[rest:])
	p.idle = p.idle[:rest]
}
