package fakebroker

import (
	"fmt"
	"slices"
)

// consumer gets the messages of one queue on one channel.
type consumer struct {
	channel  *channel
	queue    *queue
	tag      string
	noAck    bool
	prefetch int // 0: no bound
	unacked  int
}

func (c *consumer) hasRoom() bool { return c.noAck || c.prefetch == 0 || c.unacked < c.prefetch }

func (c *consumer) deliver(m *message) {
	ch := c.channel
	tag := ch.handOut(m, c.queue, c, c.noAck)
	ch.send(basicDeliver, func(e *encoder) {
		e.shortstr(c.tag)
		e.llong(tag)
		e.flag(m.redelivered)
		e.shortstr(m.exchange)
		e.shortstr(m.key)
	})
	ch.sendContent(m)
}

// cancelled tells the client that the consumer is gone. What it has stays its own to settle.
func (c *consumer) cancelled() {
	c.queue.leave(c)
	delete(c.channel.consumers, c.tag)
	c.channel.send(basicCancel, func(e *encoder) {
		e.shortstr(c.tag)
		e.flag(true) // no-wait
	})
}

// handOut gives a message the channel's next tag.
func (ch *channel) handOut(m *message, q *queue, c *consumer, noAck bool) uint64 {
	ch.lastTag++
	if !noAck {
		q.out++
		ch.unacked = append(ch.unacked, &handedOut{tag: ch.lastTag, message: m, queue: q, consumer: c})
		if c != nil {
			c.unacked++
		}
	}
	return ch.lastTag
}

// sendContent sends a message's header and body. A quorum queue writes its count over whatever a publisher put there, from the
// second delivery on.
func (ch *channel) sendContent(m *message) {
	p := m.properties
	if m.returns > 0 {
		p = p.with("x-delivery-count", m.returns)
	}
	ch.conn.sendFrame(frameHeader, ch.id, p.encode(len(m.body)))
	for part := range slices.Chunk(m.body, ch.conn.frameSize-8) {
		ch.conn.sendFrame(frameBody, ch.id, part)
	}
}

func (ch *channel) consume(d *decoder) error {
	d.short()
	name, tag, bits := d.shortstr(), d.shortstr(), d.octet()
	arguments := d.table()
	q := ch.conn.broker.queues[name]
	switch {
	case d.err != nil:
		return d.err
	case q == nil:
		return noQueue(name)
	case arguments["x-stream-offset"] != nil:
		return hard(codeNotImplemented, "NOT_IMPLEMENTED - queue '%s' in vhost '/' does not support x-stream-offset", name)
	case ch.consumers[tag] != nil:
		return hard(codeNotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag '%s'", tag)
	}
	if tag == "" {
		tag = fmt.Sprintf("amq.ctag-%d-%d", ch.id, len(ch.consumers))
	}
	c := &consumer{channel: ch, queue: q, tag: tag, noAck: bits&2 != 0, prefetch: ch.prefetch}
	ch.consumers[tag] = c
	q.consumers = append(q.consumers, c)
	if bits&8 == 0 {
		ch.send(basicConsumeOK, func(e *encoder) { e.shortstr(tag) })
	}
	q.settle()
	return nil
}

// cancel ends a consumer. Its messages stay with the channel.
func (ch *channel) cancel(tag string, noWait bool) {
	if c := ch.consumers[tag]; c != nil {
		delete(ch.consumers, tag)
		c.queue.leave(c)
	}
	if !noWait {
		ch.send(basicCancelOK, func(e *encoder) { e.shortstr(tag) })
	}
}

func (ch *channel) get(d *decoder) error {
	d.short()
	name, noAck := d.shortstr(), d.octet()&1 != 0
	q := ch.conn.broker.queues[name]
	if q == nil {
		return noQueue(name)
	}
	q.settle()
	if q.head() == nil {
		ch.send(basicGetEmpty, func(e *encoder) { e.shortstr("") })
		return nil
	}
	m := q.pop()
	tag := ch.handOut(m, q, nil, noAck)
	ch.send(basicGetOK, func(e *encoder) {
		e.llong(tag)
		e.flag(m.redelivered)
		e.shortstr(m.exchange)
		e.shortstr(m.key)
		e.long(uint32(len(q.returned) + len(q.ready)))
	})
	ch.sendContent(m)
	return nil
}
