package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// side is a consumer, as a process that can be killed and started again, and the service behind it.
type side struct {
	name  string
	queue string
	dead  string // dead-letter queue; "" for none

	binary string
	args   []string
	env    map[string]string

	shop    *shop
	runs    []*testkit.Replica // every start of the consumer; the last one is the current
	letters []letter           // what was taken from the dead-letter queue
}

// settledMessage is what both consumers log once they are done with a delivery, with the order as id. It tells when to
// look, not what happened.
const settledMessage = "settled"

const (
	settlePatience = 30 * time.Second
	stopPatience   = 15 * time.Second
	askAgain       = 20 * time.Millisecond
	tailLines      = 30
)

// start runs the consumer, for the first time or again.
func (s *side) start() error {
	replica, err := testkit.StartReplica(s.binary, s.env, s.args...)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.runs = append(s.runs, replica)
	return nil
}

func (s *side) current() *testkit.Replica { return s.runs[len(s.runs)-1] }

// stop ends the consumer in good order.
func (s *side) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopPatience, errors.New("still running"))
	defer cancel()
	if err := s.current().Term(); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	code, err := s.current().Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	return nil
}

// settled returns how often the consumer, over all its starts, was done with an order. A delivery that rabbitonce gave
// back to its queue is not done.
func (s *side) settled(id string) int {
	done := func(l testkit.LogLine) bool {
		return l.Message() == settledMessage && l.Fields["id"] == id && l.Fields["fate"] != "returned"
	}
	n := 0
	for _, r := range s.runs {
		n += len(r.Logs.Find(done))
	}
	return n
}

// await asks until the condition holds. It gives up when the consumer ends.
func (s *side) await(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settlePatience, fmt.Errorf("%s is not done after %v", s.name, settlePatience))
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-s.current().Exited():
			return fmt.Errorf("wait for %s: %s has ended", what, s.name)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// awaitSettled waits until the consumer was done n times with each order.
func (s *side) awaitSettled(ctx context.Context, ids []string, n int) error {
	for _, id := range ids {
		if err := s.await(ctx, id, func() bool { return s.settled(id) >= n }); err != nil {
			return err
		}
	}
	return nil
}

// awaitGone asks until the condition holds. The consumer has ended.
func awaitGone(ctx context.Context, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopPatience, errors.New("the broker still lists a consumer"))
	defer cancel()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		met, err := condition()
		if err != nil || met {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collect takes what came into the dead-letter queue.
func (s *side) collect(client *testkit.Client) error {
	if s.dead == "" {
		return nil
	}
	deliveries, err := client.Drain(s.dead)
	for _, d := range deliveries {
		l := letter{id: orderID(d.Body), reason: fmt.Sprint(d.Headers["x-rabbitonce-reason"])}
		if status, ok := d.Headers["x-rabbitonce-status"]; ok {
			l.status = fmt.Sprint(status)
		}
		s.letters = append(s.letters, l)
	}
	return err
}

// books returns what the side's figures are counted from.
func (s *side) books(confirmed []string) books {
	return books{confirmed: confirmed, charges: s.shop.journal(), letters: s.letters}
}

// tail is the end of the consumer's log, over its starts.
func (s *side) tail() string {
	text := ""
	for i, r := range s.runs {
		text += fmt.Sprintf("the end of the log of %s, start %d:\n%s", s.name, i+1, r.Logs.Tail(tailLines))
	}
	return text
}

func (s *side) close() error {
	var err error
	for _, r := range s.runs {
		err = errors.Join(err, r.Close())
	}
	if s.shop != nil {
		err = errors.Join(err, s.shop.Close())
	}
	return err
}
