package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// idleOutlets is how many channels are kept open for the next message.
const idleOutlets = 16

// link is one connection of the publisher, with its channels. It ends with the connection and is never used again. The
// functions are the connection's own; a call of them waits until the broker answers or the connection ends. Safe for
// concurrent use.
type link struct {
	open     func() (outlet, error)  // a new channel
	declare  func(destination) error // makes sure that the queue is there
	isClosed func() bool
	hangUp   func() // ends every call that waits

	notices <-chan blocking // closed when the connection has ended
	watched chan struct{}   // closed by the reader of notices after that
	blocked *blockage

	mu        sync.Mutex
	idle      []outlet
	sightings map[string]*sighting // by queue
}

// dialLink opens a connection to publish on.
func (b *broker) dialLink(ctx context.Context) (*link, error) {
	conn, err := b.dial(ctx, forPublishing)
	if err != nil {
		return nil, err
	}
	b.frame.Store(int64(frameSize(conn)))
	l := newLink(conn.NotifyBlocked(make(chan blocking, 1)))
	l.open = func() (outlet, error) { return openChannel(conn) }
	l.declare = func(to destination) error { return declareQueue(conn, to.on(serverVersion(conn))) }
	l.isClosed = conn.IsClosed
	l.hangUp = func() { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) }
	return l, nil
}

func newLink(notices <-chan blocking) *link {
	return &link{notices: notices, watched: make(chan struct{}), blocked: newBlockage(), sightings: map[string]*sighting{}}
}

// put publishes m and waits for the broker's word until giveUp is closed.
func (l *link) put(to destination, m letter, giveUp <-chan struct{}) error {
	err := l.tryPut(to, m, giveUp)
	if errors.Is(err, errUnroutable) { // the queue was deleted since it was last seen
		l.forget(to.queue)
		err = l.tryPut(to, m, giveUp)
	}
	return err
}

func (l *link) tryPut(to destination, m letter, giveUp <-chan struct{}) error {
	since, err := l.ensure(to)
	if err != nil {
		return publishError(err, len(m.Body))
	}
	if to.arguments != nil && !l.settle(time.Until(since.Add(settlingTime)), giveUp) {
		return errNoConfirm
	}
	free, err := l.take()
	if err != nil {
		return err
	}
	defer l.putBack(free)
	return publishError(free.send(to.queue, m, giveUp), len(m.Body))
}

// sighting is since when a queue is known on this connection. Who holds the turn may declare the queue: a quorum queue
// that is being declared has no leader yet, and refuses what a second publisher, told that it exists, sends right away.
type sighting struct {
	turn  chan struct{} // holds one token; who has it owns since
	since time.Time     // zero: it was not seen, or is gone
}

// see runs a function on the sighting of a queue.
func (l *link) see(queue string, with func(*sighting) error) error {
	l.mu.Lock()
	s, ok := l.sightings[queue]
	if !ok {
		s = &sighting{turn: make(chan struct{}, 1)}
		l.sightings[queue] = s
	}
	l.mu.Unlock()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return with(s)
}

// ensure has the queue declared unless it was seen before, and returns since when it is known.
func (l *link) ensure(to destination) (since time.Time, err error) {
	err = l.see(to.queue, func(s *sighting) error {
		if s.since.IsZero() {
			if err := l.declare(to); err != nil {
				return err
			}
			s.since = time.Now()
		}
		since = s.since
		return nil
	})
	return since, err
}

// settlingTime is how long a queue that this process may have declared must have been known before anything is put into
// it that is acknowledged elsewhere for that. A node of RabbitMQ 3.10 that is killed within a second of the declaration of
// a quorum queue comes back with a queue that has no leader, and what it had confirmed is out of reach for good: the
// declaration is on disk, the registration of the queue's log is not yet (ra_directory saves when it was idle for half a
// second, https://github.com/rabbitmq/ra/blob/main/src/ra_directory.erl). Whoever finds a queue cannot tell its age:
// another replica may have declared it just before.
const settlingTime = 2 * time.Second

// settle waits; false means that giveUp was closed before.
func (l *link) settle(left time.Duration, giveUp <-chan struct{}) bool {
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.watched: // what follows fails, and says why
	case <-giveUp:
		return false
	}
	return true
}

func (l *link) forget(queue string) {
	_ = l.see(queue, func(s *sighting) error {
		s.since = time.Time{}
		return nil
	})
}

// take returns a channel that nobody uses.
func (l *link) take() (outlet, error) {
	for {
		l.mu.Lock()
		n := len(l.idle)
		if n == 0 {
			l.mu.Unlock()
			return l.open()
		}
		last := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		if last.reusable() {
			return last, nil
		}
		last.close()
	}
}

// putBack keeps a channel for the next message, or closes it.
func (l *link) putBack(used outlet) {
	if l.keep(used) {
		return
	}
	used.close()
}

func (l *link) keep(used outlet) bool {
	if !used.reusable() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) >= idleOutlets {
		return false
	}
	l.idle = append(l.idle, used)
	return true
}

// outlet is a channel on which one message at a time is under way, so that what the broker says is about that message.
type outlet interface {
	// send publishes and waits for the broker's word until giveUp is closed.
	send(queue string, m letter, giveUp <-chan struct{}) error
	// reusable tells whether another message may be sent: not on a channel that was closed, nor on one on which the
	// word on an earlier message is still to come.
	reusable() bool
	close()
}

// confirming is a channel of the broker in confirm mode.
type confirming struct {
	ch      *channel
	returns chan returned
	ended   chan *closing
	owed    bool // a message was given up whose confirm may still come
}

func openChannel(conn *connection) (outlet, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", brokerError(err))
	}
	c := &confirming{
		ch: ch, returns: ch.NotifyReturn(make(chan returned, 1)), ended: ch.NotifyClose(make(chan *closing, 1)),
	}
	if err := ch.Confirm(false); err != nil {
		c.close()
		return nil, fmt.Errorf("switch confirms on: %w", brokerError(err))
	}
	return c, nil
}

// send publishes with mandatory: without it the broker confirms a message too that no queue took. A return always comes
// before the confirm of its message (https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed).
func (c *confirming) send(queue string, m letter, giveUp <-chan struct{}) error {
	confirm, err := c.ch.PublishWithDeferredConfirm("", queue, true, false, m)
	switch {
	case err != nil && c.ch.IsClosed():
		return c.whyEnded()
	case err != nil:
		return brokerError(err)
	}
	select {
	case <-confirm.Done():
	case <-giveUp:
		c.owed = true
		return errNoConfirm
	}
	if c.ch.IsClosed() {
		return c.whyEnded()
	}
	select {
	case <-c.returns:
		return errUnroutable
	default:
	}
	if !confirm.Acked() {
		return errNacked
	}
	return nil
}

func (c *confirming) reusable() bool { return !c.owed && !c.ch.IsClosed() }

func (c *confirming) close() { _ = c.ch.Close() }

// whyEnded gives the broker's words for the end of the channel.
func (c *confirming) whyEnded() error {
	select {
	case err := <-c.ended:
		return fmt.Errorf("no confirm: %w", channelEnd(err))
	case <-time.After(100 * time.Millisecond):
		return errors.New("the broker closed the channel before the confirm")
	}
}
