package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// confirmTimeout is how long a publish may wait for the broker's confirm before the connection is given up.
const confirmTimeout = 15 * time.Second

var (
	errUnroutable = errors.New("the broker returned the message: no queue took it")
	errNacked     = errors.New("the broker refused the message (nack): is the queue at its length limit?")
)

// publisher puts messages into queues and returns only when the broker has confirmed them. One message is under way
// at a time, so that a returned message belongs to the publish that waits. It is safe for concurrent use.
type publisher struct {
	broker *broker
	turn   chan struct{} // holds one token; who has it owns the fields below

	conn    *connection
	ch      *channel
	returns chan returned
	known   map[string]bool // queues seen on this connection

	ended   chan *closing          // why the connection or the channel was closed
	blocked atomic.Pointer[string] // why the broker blocks publishers; nil when it does not
	alarm   func(error)            // told when the broker begins to block publishers, and with nil when it ends; set before the first publish
}

func newPublisher(b *broker) *publisher {
	return &publisher{broker: b, turn: make(chan struct{}, 1)}
}

// destination is a queue, and the arguments to declare it with when it is missing.
type destination struct {
	queue     string
	arguments table
	exact     bool // one that exists must have these arguments too
}

// publish puts m into a queue, which is declared when it does not exist. Nil means that the broker has it; after any
// error it may have it all the same.
func (p *publisher) publish(ctx context.Context, to destination, m letter) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := p.tryPublish(ctx, to, m)
	if errors.Is(err, errUnroutable) { // the queue was deleted since it was last seen
		delete(p.known, to.queue)
		err = p.tryPublish(ctx, to, m)
	}
	if err != nil {
		return p.broker.grants.advise(fmt.Errorf("publish to queue %s: %w", to.queue, err))
	}
	return nil
}

func (p *publisher) tryPublish(ctx context.Context, to destination, m letter) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); p.giveUpWithoutConfirm(ctx, cancel) }()
	defer func() { cancel(nil); <-watched }()
	// A publish into a blocked connection can stand still in the socket; closing with a deadline frees it.
	conn := p.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	defer stop()
	if !p.known[to.queue] {
		if err := declareQueue(p.conn, to); err != nil {
			return err
		}
		p.known[to.queue] = true
	}
	return p.send(ctx, to.queue, m)
}

// send publishes with mandatory and waits for the confirm. A return always comes before the confirm of its message
// (https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed).
func (p *publisher) send(ctx context.Context, queue string, m letter) error {
	confirm, err := p.ch.PublishWithDeferredConfirm("", queue, true, false, m)
	if err != nil {
		return brokerError(err)
	}
	acked, err := confirm.WaitContext(ctx)
	switch {
	case err != nil || ctx.Err() != nil:
		return context.Cause(ctx)
	case p.ch.IsClosed():
		return p.whyEnded()
	}
	select {
	case <-p.returns:
		return errUnroutable
	default:
	}
	if !acked {
		return errNacked
	}
	return nil
}

// giveUpWithoutConfirm ends a publish that has no confirm after confirmTimeout, unless the broker blocks publishers:
// then the confirm comes when the alarm is over, and another connection would be blocked alike. It returns with ctx.
func (p *publisher) giveUpWithoutConfirm(ctx context.Context, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(confirmTimeout)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p.blocked.Load() == nil {
				giveUp(fmt.Errorf("no confirm from the broker within %v", confirmTimeout))
			}
		case <-ctx.Done():
			return
		}
	}
}

// whyEnded gives the broker's words for the end of the channel.
func (p *publisher) whyEnded() error {
	select {
	case err := <-p.ended:
		return fmt.Errorf("no confirm: %w", channelEnd(err))
	case <-time.After(100 * time.Millisecond):
		return errors.New("the broker closed the channel before the confirm")
	}
}

// watch keeps p.blocked true until the connection ends, when the library closes notices.
func (p *publisher) watch(notices <-chan blocking) {
	for b := range notices {
		if !b.Active {
			p.unblock()
			continue
		}
		p.blocked.Store(&b.Reason)
		if p.alarm != nil {
			p.alarm(fmt.Errorf("the broker blocks publishers (%s): free memory or disk on the broker", b.Reason))
		}
	}
	p.unblock()
}

func (p *publisher) unblock() {
	if p.blocked.Swap(nil) != nil && p.alarm != nil {
		p.alarm(nil)
	}
}

// connect opens the publishing connection and its channel when there is none that works.
func (p *publisher) connect(ctx context.Context) error {
	if p.ch != nil && !p.ch.IsClosed() && !p.conn.IsClosed() {
		return nil
	}
	p.close()
	conn, err := p.broker.dial(ctx, forPublishing)
	if err != nil {
		return err
	}
	p.conn, p.known = conn, map[string]bool{}
	p.broker.frame.Store(int64(frameSize(conn)))
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", brokerError(err))
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("switch confirms on: %w", brokerError(err))
	}
	p.ch, p.returns = ch, ch.NotifyReturn(make(chan returned, 4))
	p.ended = ch.NotifyClose(make(chan *closing, 1))
	go p.watch(conn.NotifyBlocked(make(chan blocking, 1)))
	return nil
}

// close ends the connection. Only the owner of the turn may call it, or the owner of the publisher at the end.
func (p *publisher) close() {
	if p.conn != nil {
		_ = p.conn.CloseDeadline(time.Now().Add(closeTimeout))
	}
	p.conn, p.ch = nil, nil
}

// closeNow ends the connection at the end of the process, unless a publish still holds it: the process's end closes
// it then.
func (p *publisher) closeNow() {
	select {
	case p.turn <- struct{}{}:
		p.close()
		<-p.turn
	default:
	}
}
