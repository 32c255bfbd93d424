package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A message that has to wait for longer than RETRY_HOLD does not stay here unacknowledged, where it would take up a
// place of the prefetch, run into the broker's acknowledgement timeout and come back with a higher delivery count: a
// copy is published to a wait queue, confirmed, and then the delivery is acknowledged. The wait queue has a
// time-to-live and dead-letters back to the source queue. When the message is due is in the record, not in the queue:
// one that comes back too early waits for the rest.

// waitStep is the time-to-live of the wait queue for a pause: the longest step that is not longer. A message whose
// pause is longer than every step goes through a wait queue more than once. ok is false when every step is longer: the
// message waits here, or it would come late. RETRY_HOLD is no such step: it can be so short that a message would come
// round all the time.
func (q *queue) waitStep(pause time.Duration) (step time.Duration, ok bool) {
	for _, s := range q.waitSteps {
		if s > q.cfg.Retry.Hold && s <= pause {
			step, ok = s, true
		}
	}
	return step, ok
}

// returnStep is the wait of a message that would go back to its queue, but for the broker's count of its returns. It is
// a step of every queue, for what services ask for on a ladder of few or long steps.
const returnStep = 30 * time.Second

// waitSteps are the steps of the ladder that are longer than hold, hold itself, for what has to make room, and
// returnStep, in order.
func waitSteps(ladder Ladder, hold time.Duration) []time.Duration {
	steps := []time.Duration{returnStep, hold}
	for _, step := range ladder {
		if step > hold {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// waitQueue is the name of a wait queue: {queue}.wait.{duration}.
func waitQueue(queue string, step time.Duration) string {
	return queue + ".wait." + shortDuration(step)
}

// shortDuration writes 1h, 10m, 1m30s or 500ms, without the zeros of Duration.String.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// waitArguments declare a wait queue: replicated, and dead-lettering at least once, which needs reject-publish
// (https://www.rabbitmq.com/docs/quorum-queues#dead-lettering). The source queue must take its own publishes, or
// messages stay in the wait queue.
func waitArguments(queue string, step time.Duration) table {
	return table{
		"x-queue-type":              "quorum",
		"x-message-ttl":             step.Milliseconds(),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": queue,
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish",
	}
}

// parkPatience bounds the try to park a message whose wait is not over: it can wait here as well.
const parkPatience = settlingTime + 3*time.Second

var errParkTooSlow = fmt.Errorf("no confirm within %v", parkPatience)

// parkFor moves a message to the wait queue for a pause, if there is one and it can be done soon.
func (q *queue) parkFor(hold context.Context, m *message, pause time.Duration) bool {
	step, ok := q.waitStep(pause)
	return ok && q.parkSoon(hold, m, step)
}

// parkSoon moves a message to the wait queue of a step unless that would take long.
func (q *queue) parkSoon(hold context.Context, m *message, step time.Duration) bool {
	if hold.Err() != nil || q.publisher.isBlocked() || !q.parking.mayTry() {
		return false
	}
	ctx, cancel := context.WithTimeoutCause(hold, parkPatience, errParkTooSlow)
	defer cancel()
	return q.park(ctx, m, step)
}

// park moves a message to a wait queue; the caller acknowledges the delivery then. False means that it could not be
// published.
func (q *queue) park(ctx context.Context, m *message, step time.Duration) bool {
	if q.lanes != nil {
		return false // it would lose its place in line
	}
	sent := parcel(m.delivery, m.seen)
	if m.lookups > 0 {
		sent.Headers[parkedLookups] = int64(m.lookups)
	}
	if tableSize(sent.Headers) > q.publisher.headerRoom() {
		return false // the next attempt needs its headers whole
	}
	err := q.publisher.publish(ctx, waitQueueOf(q.cfg.Name, step), sent)
	switch {
	case err == nil:
		q.parking.succeeded()
	default:
		q.parking.failed(fmt.Errorf("message %q: %w", m.logID(), err))
	}
	return err == nil
}

// Headers of a message in a wait queue keep what the way through it would change. They are taken off on arrival.
const (
	parkedPrefix = headerPrefix + "parked-"
	// parkedExchange also tells that the message was parked.
	parkedExchange  = parkedPrefix + "exchange"
	parkedFirstSeen = parkedPrefix + "first-seen"
	parkedLookups   = parkedPrefix + "lookups"
)

// deathHeaders tell of the queues that dead-lettered a message. A copy of them would make the broker take the way
// through a wait queue for a loop and drop the message (https://www.rabbitmq.com/docs/dlx#effects).
var deathHeaders = []string{
	"x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
	"x-last-death-exchange", "x-last-death-queue", "x-last-death-reason",
}

// parcel is a message as it goes to a wait queue.
func parcel(d *delivery, seen time.Time) letter {
	sent := republish(d, parkedPrefix)
	for _, name := range deathHeaders {
		setAside(sent.Headers, parkedPrefix, name)
	}
	sent.Headers[parkedFirstSeen] = stamp(seen)
	return sent
}

// unpark makes a delivery that comes from a wait queue what it was before, and tells when it was first seen. It changes
// the delivery. ok is false when it comes from elsewhere.
func unpark(d *delivery) (seen time.Time, ok bool) {
	exchange, ok := d.Headers[parkedExchange].(string)
	if !ok {
		return time.Time{}, false
	}
	text := func(name string) string {
		s, _ := d.Headers[parkedPrefix+name].(string)
		delete(d.Headers, parkedPrefix+name)
		return s
	}
	d.Exchange, d.RoutingKey, d.Expiration, d.UserId = exchange, text("routing-key"), text("expiration"), text("user-id")
	seen, err := time.Parse(time.RFC3339Nano, text("first-seen"))
	delete(d.Headers, parkedExchange)
	for _, name := range slices.Concat(routingHeaders, deathHeaders) {
		putBack(d.Headers, parkedPrefix, name)
	}
	return seen, err == nil
}
