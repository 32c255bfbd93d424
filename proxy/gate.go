package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// gate holds work back while something that it needs is away, and asks until it is back. A gate starts closed: the
// first answer opens it. Safe for concurrent use; run must be running.
type gate struct {
	part  *part
	probe func(context.Context) error
	ready func() // called before the gate opens; nil is nothing
	// patience bounds one question.
	patience time.Duration

	isUp atomic.Bool // whether it is open; changed with mu

	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	shut   chan struct{} // closed while the gate is closed
	turned time.Time     // when it last opened or closed
	// wasSteady tells that the gate had been open for a while before it closed.
	wasSteady bool

	asked  chan struct{} // closed once there was an answer, good or bad
	once   sync.Once
	pauses backoff // owned by run
}

const (
	probeFirst   = 100 * time.Millisecond
	probeLast    = 2 * time.Second
	probeTimeout = 3 * time.Second
	// steady is how long a gate must have been open to be asked quickly again: a service that accepts connections and
	// takes no request would otherwise be tried in a tight loop.
	steady = 10 * time.Second
)

func newGate(p *part, probe func(context.Context) error) *gate {
	g := &gate{
		part: p, probe: probe, patience: probeTimeout, asked: make(chan struct{}), opened: make(chan struct{}), shut: make(chan struct{}), turned: time.Now(),
		pauses: backoff{first: probeFirst, last: probeLast},
	}
	close(g.shut)
	return g
}

// close shuts the gate, because of err.
func (g *gate) close(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part.down(err) // with the lock, so that the two never disagree
	if g.isUp.Load() {
		g.wasSteady = time.Since(g.turned) > steady
		g.opened, g.turned = make(chan struct{}), time.Now()
		g.isUp.Store(false)
		close(g.shut)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part.up()
	if !g.isUp.Load() {
		if g.ready != nil {
			g.ready()
		}
		g.shut, g.turned = make(chan struct{}), time.Now()
		g.isUp.Store(true)
		close(g.opened)
	}
}

// wait returns once the gate is open, or with the cause of ctx's end, even when it is open.
func (g *gate) wait(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case g.isUp.Load():
		return nil
	}
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitAsked returns once it is known whether the gate is open, or with the cause of ctx's end.
func (g *gate) waitAsked(ctx context.Context) error {
	select {
	case <-g.asked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signals returns a channel that is closed once the gate is closed, and one that is closed once it is open again.
func (g *gate) signals() (shut, opened <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut, g.opened
}

// run probes while the gate is closed, until ctx ends.
func (g *gate) run(ctx context.Context) {
	for first := true; ; first = false {
		shut, _ := g.signals()
		select {
		case <-shut:
		case <-ctx.Done():
			return
		}
		if !first && sleep(ctx, g.firstPause()) != nil {
			return
		}
		g.knock(ctx)
	}
}

// firstPause comes before the first question after the gate was closed.
func (g *gate) firstPause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wasSteady {
		g.pauses.reset()
	}
	return g.pauses.pause()
}

// knock probes until it succeeds, then opens the gate.
func (g *gate) knock(ctx context.Context) {
	for ctx.Err() == nil {
		probeCtx, cancel := context.WithTimeout(ctx, g.patience)
		err := g.probe(probeCtx)
		cancel()
		if err == nil {
			g.open()
			g.once.Do(func() { close(g.asked) })
			return
		}
		if ctx.Err() == nil {
			g.part.down(err)
		}
		g.once.Do(func() { close(g.asked) })
		_ = sleep(ctx, g.pauses.pause())
	}
}

// sleep waits for d, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) isOpen() bool { return g.isUp.Load() }
