package fakebroker

import (
	"slices"
	"sort"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	classic = "classic"
	quorum  = "quorum"
)

// queue holds messages. Everything here is under the broker's lock.
type queue struct {
	broker     *Broker
	name, kind string
	durable    bool
	autoDelete bool
	arguments  amqp.Table
	limit      int64 // of returns; 0: none

	places    uint64
	returned  []*message // those that came back to a quorum queue: they go out first
	ready     []*message
	stuck     []*message // their time is over, and there is nowhere to put them
	out       int        // with consumers
	consumers []*consumer
	next      int // whose turn it is
	acked     []acknowledged
	timer     *time.Timer
	gone      bool
}

// acknowledged is a message of the last moments.
type acknowledged struct {
	message *message
	at      time.Time
}

func (q *queue) length() int { return len(q.returned) + len(q.ready) + len(q.stuck) }

// full tells whether the queue takes no more, by x-max-length and reject-publish.
func (q *queue) full() bool {
	most, ok := integer(q.arguments["x-max-length"])
	return ok && q.arguments["x-overflow"] == "reject-publish" && int64(q.length()) >= most
}

// push puts a new message at the end.
func (q *queue) push(m *message) {
	if q.gone {
		return
	}
	q.places++
	m.place = q.places
	if ttl, ok := integer(q.arguments["x-message-ttl"]); ok {
		m.expires = time.Now().Add(time.Duration(ttl) * time.Millisecond)
	}
	if own, ok := parseMilliseconds(m.properties.expiration); ok {
		if until := time.Now().Add(own); m.expires.IsZero() || until.Before(m.expires) {
			m.expires = until
		}
	}
	q.ready = append(q.ready, m)
	if most, ok := integer(q.arguments["x-max-length"]); ok && int64(len(q.returned)+len(q.ready)) > most {
		q.deadLetter(q.pop(), "maxlen")
	}
	q.settle()
}

// pop takes the head; there must be one.
func (q *queue) pop() *message {
	from := &q.ready
	if len(q.returned) > 0 {
		from = &q.returned
	}
	m := (*from)[0]
	*from = (*from)[1:]
	return m
}

func (q *queue) head() *message {
	if len(q.returned) > 0 {
		return q.returned[0]
	}
	if len(q.ready) > 0 {
		return q.ready[0]
	}
	return nil
}

// takeBack puts a message back that was handed out. A classic queue has its old place for it. A quorum queue puts it before all
// others, or, when a consumer gives it back and there is no delivery limit, behind them
// (https://www.rabbitmq.com/docs/quorum-queues#repeated-requeues).
func (q *queue) takeBack(m *message, byConsumer bool) {
	q.out--
	if q.gone {
		return
	}
	m.redelivered = true
	if q.kind != quorum {
		at := sort.Search(len(q.ready), func(i int) bool { return q.ready[i].place > m.place })
		q.ready = slices.Insert(q.ready, at, m)
		return
	}
	m.returns++
	switch {
	case q.limit > 0 && m.returns > q.limit:
		q.deadLetter(m, "delivery_limit")
	case byConsumer && q.limit == 0:
		q.ready = append(q.ready, m)
	default:
		q.returned = append(q.returned, m)
	}
}

// acknowledge drops a message that was handed out.
func (q *queue) acknowledge(m *message) {
	q.out--
	now := time.Now()
	q.acked = slices.DeleteFunc(q.acked, func(a acknowledged) bool { return now.Sub(a.at) > lastMoments })
	q.acked = append(q.acked, acknowledged{m, now})
}

// settle expires what is over, hands out what it can, and comes again when the next message expires.
func (q *queue) settle() {
	if q.gone {
		return
	}
	for m := q.head(); m != nil && !m.expires.IsZero() && !m.expires.After(time.Now()); m = q.head() {
		q.deadLetter(q.pop(), "expired")
	}
	q.handOut()
	q.disarm()
	if m := q.head(); m != nil && !m.expires.IsZero() {
		q.timer = time.AfterFunc(time.Until(m.expires), func() {
			q.broker.mu.Lock()
			defer q.broker.mu.Unlock()
			q.settle()
		})
	}
}

func (q *queue) disarm() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// handOut gives messages to consumers that have room, in turn.
func (q *queue) handOut() {
	for q.head() != nil {
		c := q.nextConsumer()
		if c == nil {
			return
		}
		c.deliver(q.pop())
	}
}

// nextConsumer is one that has room; nil is none.
func (q *queue) nextConsumer() *consumer {
	candidates := q.consumers
	if q.arguments["x-single-active-consumer"] == true && len(candidates) > 1 {
		candidates = candidates[:1]
	}
	for i := range candidates {
		at := (q.next + i) % len(candidates)
		if c := candidates[at]; c.hasRoom() {
			q.next = at + 1
			return c
		}
	}
	return nil
}

func (q *queue) leave(c *consumer) {
	q.consumers = slices.DeleteFunc(q.consumers, func(other *consumer) bool { return other == c })
	if len(q.consumers) == 0 && q.autoDelete {
		q.delete()
	}
}

func (q *queue) cancelConsumers() {
	for _, c := range slices.Clone(q.consumers) {
		c.cancelled()
	}
}

func (q *queue) delete() {
	q.gone = true
	q.disarm()
	delete(q.broker.queues, q.name)
	q.cancelConsumers()
}

// recover is the start after the end of the node: what is transient is gone, and so may be acknowledgements.
func (q *queue) recover(forgets func() bool) {
	for _, a := range q.acked {
		if forgets != nil && time.Since(a.at) <= lastMoments && forgets() {
			q.out++
			q.takeBack(a.message, false)
		}
	}
	q.acked = nil
	if q.kind == classic {
		transient := func(m *message) bool { return m.properties.deliveryMode != 2 }
		q.ready = slices.DeleteFunc(q.ready, transient)
	}
	if !q.durable {
		q.delete()
	}
	q.settle()
}
