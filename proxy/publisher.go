package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// confirmTimeout is how long a publish may wait for the broker's word before it is given up, with its channel. Time
	// in which the broker blocks publishers does not count.
	confirmTimeout = 15 * time.Second
	// outletsPerQueue is how many messages may be under way to one queue: one whose confirms do not come, as that of a
	// quorum queue without a majority, holds up this many and nobody who publishes elsewhere.
	outletsPerQueue = 4
)

var errClosing = errors.New("publishing has ended with the process")

// publisher puts messages into queues and returns only when the broker has confirmed them. It has one connection, with
// as many channels as messages are under way. It is safe for concurrent use.
//
// It owns a goroutine for each message under way, which may outlive the publish that began it (the broker's word is
// awaited all the same), and one for the connection's notices. closeNow waits for all of them.
type publisher struct {
	broker *broker
	dial   func(context.Context) (*link, error)
	alarm  func(error) // told when the broker begins to block publishers, and with nil when it ends; set before the first publish

	connecting chan struct{} // holds one token: who has it may dial

	mu     sync.Mutex
	link   *link                    // nil before the first connection
	places map[string]chan struct{} // by queue, one token a message under way
	closed bool
	work   sync.WaitGroup // begun under mu, never once closed
}

func newPublisher(b *broker) *publisher {
	return &publisher{broker: b, dial: b.dialLink, connecting: make(chan struct{}, 1), places: map[string]chan struct{}{}}
}

// publish puts m into a queue, which is declared when it does not exist. Nil means that the broker has it; after any
// error it may have it all the same.
func (p *publisher) publish(ctx context.Context, to destination, m letter) error {
	if err := p.tryPublish(ctx, to, m); err != nil {
		return p.broker.grants.advise(fmt.Errorf("publish to queue %s: %w", to.queue, err))
	}
	return nil
}

func (p *publisher) tryPublish(ctx context.Context, to destination, m letter) error {
	place := p.place(to.queue)
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	leave := func() { <-place }
	l, err := p.connect(ctx)
	if err == nil {
		err = l.blocked.wait(ctx) // what is sent now would fill the socket and wait there
	}
	if err != nil {
		leave()
		return err
	}
	answer, overdue := make(chan error, 1), make(chan struct{})
	if !p.begin(func() { defer leave(); p.attempt(l, to, m, answer, overdue) }) {
		leave()
		return errClosing
	}
	select {
	case err := <-answer:
		return err
	case <-overdue:
		return errNoConfirm
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt sends m and answers. It closes overdue when the broker's word does not come in time.
func (p *publisher) attempt(l *link, to destination, m letter, answer chan<- error, overdue chan struct{}) {
	answered := make(chan struct{})
	p.work.Go(func() {
		if l.blocked.outlasts(confirmTimeout, answered) {
			close(overdue)
		}
	})
	answer <- l.put(to, m, overdue)
	close(answered)
}

// place is where a queue's messages under way take their tokens.
func (p *publisher) place(queue string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	place, ok := p.places[queue]
	if !ok {
		place = make(chan struct{}, outletsPerQueue)
		p.places[queue] = place
	}
	return place
}

// begin starts a goroutine that closeNow waits for. False: it is too late.
func (p *publisher) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(f)
	}
	return !p.closed
}

// current is the link that works, nil when there is none; latest the last one, dead or alive, nil before the first.
func (p *publisher) current() (current, latest *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil || p.link.isClosed() {
		return nil, p.link
	}
	return p.link, p.link
}

// isBlocked tells whether the broker blocks publishers now.
func (p *publisher) isBlocked() bool {
	l, _ := p.current()
	return l != nil && l.blocked.active()
}

// connect returns the link, dialling when there is none that works. The notices of the one before have ended by then,
// so that nothing they say is taken for the new one's.
func (p *publisher) connect(ctx context.Context) (*link, error) {
	if l, _ := p.current(); l != nil {
		return l, nil
	}
	select {
	case p.connecting <- struct{}{}:
		defer func() { <-p.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l, before := p.current()
	if l != nil {
		return l, nil
	}
	if before != nil {
		select {
		case <-before.watched:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	l, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	if !p.adopt(l) {
		l.hangUp()
		return nil, errClosing
	}
	return l, nil
}

// adopt makes l the link in use, unless it is too late for one.
func (p *publisher) adopt(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.link = l
		p.work.Go(func() { p.watch(l) })
	}
	return !p.closed
}

// watch follows the link's notices until it ends.
func (p *publisher) watch(l *link) {
	defer close(l.watched)
	defer p.unblock(l)
	for notice := range l.notices {
		if !notice.Active {
			p.unblock(l)
			continue
		}
		l.blocked.begin()
		if p.alarm != nil {
			p.alarm(fmt.Errorf("the broker blocks publishers (%s): free memory or disk on the broker", notice.Reason))
		}
	}
}

func (p *publisher) unblock(l *link) {
	if l.blocked.end() && p.alarm != nil {
		p.alarm(nil)
	}
}

// closeNow ends the connection and everything that waits on it.
func (p *publisher) closeNow() {
	p.mu.Lock()
	p.closed = true
	l := p.link
	p.mu.Unlock()
	if l != nil {
		l.hangUp()
	}
	p.work.Wait()
}
