package proxy

import (
	"context"
	"maps"
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
// message waits here, or it would come late.
func (q *queue) waitStep(pause time.Duration) (step time.Duration, ok bool) {
	for _, s := range q.waitSteps {
		if s <= pause {
			step, ok = s, true
		}
	}
	return step, ok
}

// returnStep is the wait of a message that would go back to its queue, but for the broker's count of its returns. It is
// a step of every queue, for what services ask for on a ladder of few or long steps.
const returnStep = 30 * time.Second

// waitSteps are the steps of the ladder that are longer than hold, and returnStep, in order.
func waitSteps(ladder Ladder, hold time.Duration) []time.Duration {
	steps := []time.Duration{returnStep}
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
const parkPatience = 3 * time.Second

// parkFor moves a message to the wait queue for a pause, if there is one and it can be done soon.
func (q *queue) parkFor(hold context.Context, m *message, pause time.Duration) bool {
	step, ok := q.waitStep(pause)
	if !ok || hold.Err() != nil || q.publisher.blocked.Load() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(hold, parkPatience)
	defer cancel()
	return q.park(ctx, m, step)
}

// park moves a message to a wait queue; the caller acknowledges the delivery then. False means that it could not be
// published.
func (q *queue) park(ctx context.Context, m *message, step time.Duration) bool {
	if q.lanes != nil {
		return false // it would lose its place in line
	}
	sent := parcel(m.delivery)
	if tableSize(sent.Headers) > headerRoom(q.publisher.broker.frame.Load()) {
		return false // the next attempt needs its headers whole
	}
	to := destination{queue: waitQueue(q.cfg.Name, step), arguments: waitArguments(q.cfg.Name, step), exact: true}
	err := q.publisher.publish(ctx, to, sent)
	if err != nil {
		q.log.Warn("a message could not be moved to a wait queue", "id", m.logID(), "error", err.Error())
	}
	return err == nil
}

// Headers of a message in a wait queue keep what the way through it would change. They are taken off on arrival.
const (
	parkedExchange   = headerPrefix + "parked-exchange" // also tells that the message was parked
	parkedRoutingKey = headerPrefix + "parked-routing-key"
	parkedExpiration = headerPrefix + "parked-expiration"
	parkedUserID     = headerPrefix + "parked-user-id"
	parkedCC         = headerPrefix + "parked-cc"
)

var (
	// deathHeaders tell of the queues that dead-lettered a message. A copy of them would make the broker take the way
	// through a wait queue for a loop and drop the message (https://www.rabbitmq.com/docs/dlx#effects).
	deathHeaders = []string{
		"x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
		"x-last-death-exchange", "x-last-death-queue", "x-last-death-reason",
	}
	// countHeaders are a queue's own counts of a message; in another queue they mean nothing.
	countHeaders = []string{"x-delivery-count", "x-acquired-count"}
)

// parcel is a message as it goes to a wait queue: without an expiration, which would drop it or bring it back early,
// without a user-id, which has to be the publisher's own, and without CC, which routes.
func parcel(d *delivery) letter {
	headers := make(table, len(d.Headers)+4)
	maps.Copy(headers, d.Headers)
	for _, name := range slices.Concat(deathHeaders, countHeaders) {
		delete(headers, name)
	}
	headers[parkedExchange], headers[parkedRoutingKey] = d.Exchange, d.RoutingKey
	if d.Expiration != "" {
		headers[parkedExpiration] = d.Expiration
	}
	if d.UserId != "" {
		headers[parkedUserID] = d.UserId
	}
	if cc, ok := headers["CC"]; ok {
		headers[parkedCC] = cc
		delete(headers, "CC")
	}
	return letter{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}

// unpark makes a delivery that comes from a wait queue what it was before. It changes the delivery.
func unpark(d *delivery) {
	exchange, ok := d.Headers[parkedExchange].(string)
	if !ok {
		return
	}
	text := func(name string) string { s, _ := d.Headers[name].(string); return s }
	d.Exchange, d.RoutingKey = exchange, text(parkedRoutingKey)
	d.Expiration, d.UserId = text(parkedExpiration), text(parkedUserID)
	if cc, ok := d.Headers[parkedCC]; ok {
		d.Headers["CC"] = cc
	}
	for _, name := range slices.Concat([]string{parkedExchange, parkedRoutingKey, parkedExpiration, parkedUserID, parkedCC}, deathHeaders) {
		delete(d.Headers, name)
	}
}
