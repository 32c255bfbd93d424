package proxy

import (
	"errors"
	"sync"
	"time"
)

// parking knows how publishing to a queue's wait queues goes. After a failure nothing is moved for a growing while:
// what cannot wait elsewhere can wait here. Safe for concurrent use.
type parking struct {
	part *part

	mu     sync.Mutex
	pauses backoff
	until  time.Time // nothing is moved before
}

func newParking(p *part) *parking {
	return &parking{part: p, pauses: backoff{first: time.Second, last: 30 * time.Second}}
}

func (p *parking) mayTry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.until)
}

func (p *parking) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses.reset()
	p.until = time.Time{}
	p.part.up()
}

// idle forgets a failure when nothing is left that waits: there is nothing to move, and what was in the way may be gone.
func (p *parking) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part.up()
}

// failed notes why a message could not be moved. That the delivery has to go back is no failure.
func (p *parking) failed(err error) {
	for _, end := range []error{errSessionEnded, errDraining, errPaused, errGraceOver, errClosing} {
		if errors.Is(err, end) {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.After(p.until) { // failures at the same time are one
		p.until = now.Add(p.pauses.pause())
	}
	p.part.down(err)
}
