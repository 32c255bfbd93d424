package main

import (
	"context"
	"fmt"
	"time"
)

// story plays the scenes, one after another. Each publishes, makes its trouble, waits until both consumers are done and
// reports what the books say.
func (s *stage) story(ctx context.Context) error {
	scenes := []func(context.Context) error{
		s.opening, s.lateConfirm, s.poison, s.replay, s.serviceCrash, s.brokerDrop, s.consumerKill, s.closingOrders,
	}
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// opening is a quiet beginning.
func (s *stage) opening(ctx context.Context) error {
	s.printer.event("10 orders")
	ids, err := s.publish(ctx, 10)
	if err != nil {
		return err
	}
	return s.report(ctx, ids, 1)
}

// lateConfirm is the most usual source of copies.
func (s *stage) lateConfirm(ctx context.Context) error {
	o := s.nextOrder()
	s.printer.event(o.MessageID + " published again: confirm was late")
	if err := s.publisher.publishAgain(ctx, o); err != nil {
		return err
	}
	return s.report(ctx, []string{o.MessageID}, 2)
}

// poison is an order that the service refuses with 400.
func (s *stage) poison(ctx context.Context) error {
	o := s.nextOrder()
	o.Amount = "twelve"
	s.printer.trouble(o.MessageID + " is poison: the service answers 400")
	if err := s.publisher.publish(ctx, o); err != nil {
		return err
	}
	return s.report(ctx, []string{o.MessageID}, 1)
}

// replay is a publisher that starts again from its last checkpoint.
func (s *stage) replay(ctx context.Context) error {
	s.printer.event("publisher restarts, repeats 3 old orders")
	var ids []string
	for number := 4; number <= 6; number++ {
		o := newOrder(number)
		if err := s.publisher.publish(ctx, o); err != nil {
			return err
		}
		ids = append(ids, o.MessageID)
	}
	return s.report(ctx, ids, 2)
}

// serviceCrash ends both services between two requests; orders come while they are down.
func (s *stage) serviceCrash(ctx context.Context) error {
	s.printer.trouble(fmt.Sprintf("service crashes for %v, 6 orders come", s.serviceDown))
	s.plain.shop.Stop()
	s.rabbitonce.shop.Stop()
	ids, err := s.publish(ctx, 6)
	if err != nil {
		return err
	}
	pause(ctx, s.serviceDown)
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if err := side.shop.Start(); err != nil {
			return err
		}
	}
	return s.report(ctx, ids, 1)
}

// brokerDrop cuts the consumers' connections while the service holds the answer for an order that it has charged, so
// that no ack can be on its way; orders come while the broker cannot be reached.
func (s *stage) brokerDrop(ctx context.Context) error {
	o := s.nextOrder()
	s.printer.trouble(o.MessageID + " charged, broker gone before the ack")
	release, err := s.publishHeld(ctx, o)
	if err != nil {
		return err
	}
	s.link.Refuse()
	s.link.Cut()
	release()
	more, err := s.publish(ctx, 3)
	if err != nil {
		return err
	}
	pause(ctx, s.brokerGone)
	if err := s.link.Reopen(); err != nil {
		return err
	}
	return s.reportBroken(ctx, o.MessageID, more, 2)
}

// consumerKill kills both consumers with SIGKILL while the service holds the answer for an order that it has charged.
func (s *stage) consumerKill(ctx context.Context) error {
	o := s.nextOrder()
	s.printer.trouble(o.MessageID + " charged, kill -9 before the ack")
	release, err := s.publishHeld(ctx, o)
	if err != nil {
		return err
	}
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if err := side.current().Kill(); err != nil {
			return err
		}
	}
	release()
	more, err := s.publish(ctx, 3)
	if err != nil {
		return err
	}
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if err := side.start(); err != nil {
			return err
		}
	}
	return s.reportBroken(ctx, o.MessageID, more, 1)
}

// closingOrders shows that both sides are well again.
func (s *stage) closingOrders(ctx context.Context) error {
	s.printer.event("10 more orders")
	ids, err := s.publish(ctx, 10)
	if err != nil {
		return err
	}
	return s.report(ctx, ids, 1)
}

func (s *stage) nextOrder() order {
	s.orders++
	return newOrder(s.orders)
}

// publish publishes n new orders at the stream's pace and returns their IDs.
func (s *stage) publish(ctx context.Context, n int) ([]string, error) {
	var ids []string
	for range n {
		o := s.nextOrder()
		if err := s.publisher.publish(ctx, o); err != nil {
			return nil, err
		}
		ids = append(ids, o.MessageID)
		pause(ctx, s.pace)
	}
	return ids, nil
}

// holdPatience bounds the time from publishing an order to its charge on both sides. It is shorter than rabbitonce's
// FORWARD_TIMEOUT, which must not end the first side's request while the second is waited for.
const holdPatience = 3 * time.Second

// publishHeld publishes an order and returns when both services have charged it and hold the answer. release lets them
// answer.
func (s *stage) publishHeld(ctx context.Context, o order) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, holdPatience, fmt.Errorf("not charged within %v", holdPatience))
	defer cancel()
	left, right := s.plain.shop.holdBack(o.MessageID), s.rabbitonce.shop.holdBack(o.MessageID)
	if err := s.publisher.publish(ctx, o); err != nil {
		return nil, err
	}
	for _, h := range []*hold{left, right} {
		if err := h.wait(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", o.MessageID, err)
		}
	}
	return func() { close(left.release); close(right.release) }, nil
}

// report waits until both consumers were done n times with each order, and ends the event's line.
func (s *stage) report(ctx context.Context, ids []string, n int) error {
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if err := side.awaitSettled(ctx, ids, n); err != nil {
			return err
		}
	}
	return s.results(ids, n > 1)
}

// reportBroken is report for an order whose first delivery was broken off after the charge. rabbitonce is done with it n
// times. What the plain consumer believes to have acknowledged tells nothing, so its second POST is waited for.
func (s *stage) reportBroken(ctx context.Context, id string, more []string, n int) error {
	if err := s.plain.await(ctx, id, func() bool { return s.plain.shop.received(id) > 1 }); err != nil {
		return err
	}
	if err := s.plain.awaitSettled(ctx, append(more, id), 1); err != nil {
		return err
	}
	if err := s.rabbitonce.awaitSettled(ctx, []string{id}, n); err != nil {
		return err
	}
	if err := s.rabbitonce.awaitSettled(ctx, more, 1); err != nil {
		return err
	}
	return s.results([]string{id}, true)
}

func (s *stage) results(ids []string, again bool) error {
	if err := s.rabbitonce.collect(s.operator); err != nil {
		return err
	}
	confirmed := s.publisher.confirmed()
	s.printer.results(
		judgeAll(s.plain.books(confirmed), ids, again), judgeAll(s.rabbitonce.books(confirmed), ids, again))
	return nil
}
