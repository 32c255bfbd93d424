package proxy

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// settlement is what a delivery's handler wants done with it on the channel that brought it.
type settlement struct {
	tag  uint64
	verb settleVerb
	sent chan<- struct{} // closed once the broker has the ack or reject; nil when nobody waits for that
}

type settleVerb uint8

const (
	settleAck settleVerb = iota
	settleGiveBack
	settleReject // to the queue's dead-letter exchange
)

const (
	// ackPatience is how long a finished delivery waits behind an open one for an ack that covers both.
	ackPatience = 5 * time.Millisecond
)

var errSessionEnded = errors.New("the session that brought the delivery has ended")

// session is one consumer on one channel. A delivery belongs to the session that brought it: after the session ended
// its settlement is dropped, since the same tag on another channel is another message. What was recorded covers the
// redelivery.
//
// run owns the channel and every field but ended and settled.
type session struct {
	consumer *consumer
	settled  chan settlement
	ended    chan struct{} // closed by run when it returns
	lost     error         // why the broker's side ended; nil when all was settled first. Read after ended

	book      *ackBook
	open      int  // deliveries taken in and not settled
	cancelled bool // the consumer was cancelled by us; when ordered: nothing is taken in any more
	ordered   bool // what is not settled goes back all at once, with the channel; see cancelWhenHeld
	askedType bool // the broker was asked whether the queue is a stream
	handled   bool // something was settled other than by giving it back
	burst     burst
}

func newSession(c *consumer, prefetch int) *session {
	return &session{consumer: c, settled: make(chan settlement, prefetch), ended: make(chan struct{}), book: newAckBook()}
}

// settle hands a settlement over; it is dropped when the session has ended.
func (s *session) settle(tag uint64, verb settleVerb) {
	select {
	case s.settled <- settlement{tag: tag, verb: verb}:
	case <-s.ended:
	}
}

// ackNow acknowledges tag without waiting for others and reports whether the ack reached the broker. A quorum queue may
// still have to take it in: see burst.
func (s *session) ackNow(tag uint64) bool { return s.settleNow(tag, settleAck) }

// rejectNow rejects tag and reports whether the reject reached the broker.
func (s *session) rejectNow(tag uint64) bool { return s.settleNow(tag, settleReject) }

func (s *session) settleNow(tag uint64, verb settleVerb) bool {
	sent := make(chan struct{})
	select {
	case s.settled <- settlement{tag: tag, verb: verb, sent: sent}:
	case <-s.ended:
		return false
	}
	select {
	case <-sent:
		return true
	case <-s.ended:
	}
	select {
	case <-sent: // both came
		return true
	default:
		return false
	}
}

// run takes deliveries in and settles them until the channel ends, or until hold ends and every delivery is settled.
// start is called for each delivery, with a context that ends with hold or with the session. The error tells why the
// broker's side ended.
func (s *session) run(hold context.Context, start func(hold context.Context, d *delivery)) (err error) {
	inner, end := context.WithCancelCause(hold)
	defer func() {
		end(errSessionEnded)
		s.lost = err
		close(s.ended)
		s.consumer.close()
	}()
	patience := time.NewTimer(time.Hour)
	patience.Stop()
	defer patience.Stop()
	deliveries := s.consumer.deliveries
	for (deliveries != nil && !s.leaving()) || s.open > 0 {
		select {
		case d, ok := <-deliveries:
			switch {
			case ok && s.provesStream(&d):
				return errStream
			case ok:
				if s.takeIn(inner, &d, start) != nil {
					return s.consumer.ended()
				}
			case !s.cancelled:
				return s.consumer.ended()
			default:
				deliveries = nil
			}
		case st := <-s.settled:
			if s.cancelWhenHeld(hold) != nil || s.settleAll(st, patience) != nil {
				return s.consumer.ended()
			}
		case <-patience.C:
			if s.ackSingles() != nil {
				return s.consumer.ended()
			}
		case <-s.draining(hold):
			if s.cancelWhenHeld(hold) != nil {
				return s.consumer.ended()
			}
		case err := <-s.consumer.closed: // after our own cancel this is the only notice of a lost channel
			return channelEnd(err)
		}
	}
	if err := s.ackSingles(); err != nil {
		return err
	}
	time.Sleep(s.burst.quiet(time.Now()))
	return nil
}

// draining is closed when the consumer has to be cancelled; nil, which is never ready, once it was.
func (s *session) draining(hold context.Context) <-chan struct{} {
	if s.cancelled {
		return nil
	}
	return hold.Done()
}

// cancelWhenHeld cancels the consumer once hold has ended: before anything is given back, or the broker would hand it
// out to us again. It waits for the broker, here, since the library takes one call on a channel at a time.
//
// Where order is kept the consumer is not cancelled: on a queue with a single active consumer the broker would at once
// hand the messages behind ours to the next one (https://www.rabbitmq.com/docs/consumers#single-active-consumer). Nor
// is anything given back one by one: a quorum queue puts returns in a line of their own, in the order in which they
// come. When its channel closes, all that is unsettled goes back at once and in order, in quorum queues
// (https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo.erl, return_all) and in classic
// ones (https://www.rabbitmq.com/docs/nack#overview).
func (s *session) cancelWhenHeld(hold context.Context) error {
	if s.cancelled || hold.Err() == nil {
		return nil
	}
	s.cancelled = true
	if s.ordered {
		return nil
	}
	return s.consumer.cancel()
}

// leaving tells that the session only waits for what is in a POST: the channel's end gives back the rest.
func (s *session) leaving() bool { return s.ordered && s.cancelled }

// provesStream asks the broker, once a session, when a delivery looks like a stream's.
func (s *session) provesStream(d *delivery) bool {
	if s.askedType || !fromStream(d) {
		return false
	}
	s.askedType = true
	return s.consumer.isStream()
}

// takeIn starts a handler, or gives the delivery back when the session no longer takes any. One that has come back
// before is the handler's all the same: it may have to take another way than back.
func (s *session) takeIn(inner context.Context, d *delivery, start func(context.Context, *delivery)) error {
	if s.ordered && inner.Err() != nil {
		return nil
	}
	s.open++
	if inner.Err() != nil && brokerReturns(d) < returnsLimit {
		back := settlement{tag: d.DeliveryTag, verb: settleGiveBack}
		select {
		case s.settled <- back:
			return nil
		default: // more deliveries than the prefetch, as a broker may hand out after its nodes lost each other
			return s.settleOne(back)
		}
	}
	start(inner, d)
	return nil
}

// settleAll settles st and what else is there once everybody who is ready to run has had a turn, so that one ack can cover
// many.
func (s *session) settleAll(st settlement, patience *time.Timer) error {
	runtime.Gosched()
	for more := true; more; {
		if err := s.settleOne(st); err != nil {
			return err
		}
		select {
		case st = <-s.settled:
		default:
			more = false
		}
	}
	if tag, acks := s.book.prefix(); acks > 0 {
		s.burst.add(time.Now())
		if err := s.consumer.ack(tag, acks > 1); err != nil {
			return err
		}
	}
	if s.book.waiting() > cap(s.settled)/4 {
		return s.ackSingles()
	}
	if s.book.waiting() > 0 {
		patience.Reset(ackPatience)
	}
	return nil
}

func (s *session) settleOne(st settlement) error {
	s.open--
	s.handled = s.handled || st.verb != settleGiveBack
	switch {
	case st.verb == settleGiveBack && s.ordered:
		return nil // still open for the book: no ack may cover it
	case st.verb == settleGiveBack:
		s.book.forgo(st.tag)
		s.burst.add(time.Now())
		return s.consumer.giveBack(st.tag)
	case st.sent != nil:
		s.book.forgo(st.tag)
		act := func(tag uint64) error { return s.consumer.ack(tag, false) }
		if st.verb == settleReject {
			act = s.consumer.reject
		}
		s.burst.add(time.Now())
		if err := act(st.tag); err != nil {
			return err
		}
		if err := s.consumer.arrived(); err != nil {
			return err
		}
		close(st.sent)
		return nil
	}
	s.book.finish(st.tag)
	return nil
}

func (s *session) ackSingles() error {
	for _, tag := range s.book.singles() {
		s.burst.add(time.Now())
		if err := s.consumer.ack(tag, false); err != nil {
			return err
		}
	}
	return nil
}
