package fakebroker

import (
	"errors"
	"slices"
)

// channel is one of a connection. Everything here is under the broker's lock.
type channel struct {
	conn *connection
	id   uint16

	prefetch  int // of consumers to come; 0: no bound
	consumers map[string]*consumer
	unacked   []*handedOut // in the order of their tags
	lastTag   uint64

	confirming bool
	published  uint64
	content    *content // what is being published
	closing    bool     // close was sent: only close and close-ok count
}

// handedOut is a message that a client has and has not settled.
type handedOut struct {
	tag      uint64
	message  *message
	queue    *queue
	consumer *consumer // nil: it was taken by get
}

// takeOnChannel handles a frame of a channel.
func (c *connection) takeOnChannel(f frame) {
	d := &decoder{data: f.payload}
	ch := c.channels[f.channel]
	if f.kind != frameMethod {
		if ch != nil && !ch.closing {
			if err := ch.takeContent(f); err != nil {
				ch.fail(err, basicPublish)
			}
		}
		return
	}
	m := method{d.short(), d.short()}
	switch {
	case ch == nil && m == channelOpen:
		c.channels[f.channel] = &channel{conn: c, id: f.channel, consumers: map[string]*consumer{}}
		c.send(f.channel, channelOpenOK, func(e *encoder) { e.longstr("") })
	case ch == nil && (m == channelCloseOK || m == channelClose):
		if m == channelClose {
			c.send(f.channel, channelCloseOK, nil)
		}
	case ch == nil:
		c.fail(hard(codeChannelError, "CHANNEL_ERROR - expected 'channel.open'"), m)
	case m == channelClose:
		ch.end()
		delete(c.channels, f.channel)
		c.send(f.channel, channelCloseOK, nil)
	case m == channelCloseOK && ch.closing:
		delete(c.channels, f.channel)
	case ch.closing:
	default:
		err := ch.handle(m, d)
		if err == nil {
			err = d.err
		}
		if err != nil {
			ch.fail(err, m)
		}
	}
}

// fail ends the channel, or the connection where the error is about all of it.
func (ch *channel) fail(err error, at method) {
	var r *reply
	if !errors.As(err, &r) || r.hard {
		ch.conn.fail(err, at)
		return
	}
	ch.conn.broker.refuse(r)
	ch.end()
	ch.closing = true
	ch.conn.send(ch.id, channelClose, func(e *encoder) { r.encode(e, at) })
}

// end gives back what is not settled, in its order.
func (ch *channel) end() {
	var touched []*queue
	for _, c := range ch.consumers {
		c.queue.leave(c)
		touched = append(touched, c.queue)
	}
	clear(ch.consumers)
	unacked := ch.unacked
	ch.unacked = nil
	for _, h := range unacked {
		h.queue.takeBack(h.message, false)
		touched = append(touched, h.queue)
	}
	for i, q := range touched {
		if !slices.Contains(touched[:i], q) {
			q.settle()
		}
	}
}

func (ch *channel) send(m method, fill func(e *encoder)) { ch.conn.send(ch.id, m, fill) }

func (ch *channel) handle(m method, d *decoder) error {
	if ch.content != nil {
		return hard(codeCommandInvalid, "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead")
	}
	switch m {
	case basicQos:
		d.long()
		ch.prefetch = int(d.short())
		ch.send(basicQosOK, nil)
	case basicPublish:
		return ch.beginPublish(d)
	case basicConsume:
		return ch.consume(d)
	case basicCancel:
		ch.cancel(d.shortstr(), d.octet()&1 != 0)
	case basicGet:
		return ch.get(d)
	case basicAck:
		return ch.settle(d.llong(), d.octet()&1 != 0, settleAck)
	case basicReject:
		tag, requeue := d.llong(), d.octet()&1 != 0
		return ch.settle(tag, false, nackOf(requeue))
	case basicNack:
		tag, bits := d.llong(), d.octet()
		return ch.settle(tag, bits&1 != 0, nackOf(bits&2 != 0))
	case queueDeclare:
		return ch.declare(d)
	case queuePurge:
		return ch.purge(d)
	case queueDelete:
		return ch.delete(d)
	case confirmSelect:
		ch.confirming = true
		ch.send(confirmSelectOK, nil)
	default:
		return hard(codeNotImplemented, "NOT_IMPLEMENTED - method %d.%d", m.class, m.number)
	}
	return nil
}

type settlement uint8

const (
	settleAck settlement = iota
	settleRequeue
	settleReject
)

func nackOf(requeue bool) settlement {
	if requeue {
		return settleRequeue
	}
	return settleReject
}

// settle settles one tag, or all up to it; 0 with multiple is all. A tag that is not outstanding ends the channel
// (https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking).
func (ch *channel) settle(tag uint64, multiple bool, how settlement) error {
	at := slices.IndexFunc(ch.unacked, func(h *handedOut) bool { return h.tag == tag })
	from := at
	switch {
	case multiple && tag == 0:
		from, at = 0, len(ch.unacked)-1
	case at < 0:
		return soft(codePrecondition, "PRECONDITION_FAILED - unknown delivery tag %d", tag)
	case multiple:
		from = 0
	}
	settled := slices.Clone(ch.unacked[from : at+1])
	ch.unacked = slices.Delete(ch.unacked, from, at+1)
	for _, h := range settled {
		if h.consumer != nil {
			h.consumer.unacked--
		}
		switch how {
		case settleAck:
			h.queue.acknowledge(h.message)
		case settleReject:
			h.queue.out--
			h.queue.deadLetter(h.message, "rejected")
		default:
			h.queue.takeBack(h.message, true)
		}
	}
	for _, h := range settled {
		h.queue.settle()
	}
	return nil
}

func (ch *channel) declare(d *decoder) error {
	d.short()
	name, bits, arguments := d.shortstr(), d.octet(), d.table()
	if d.err != nil {
		return d.err
	}
	q, err := ch.conn.broker.declareLocked(declaration{
		name: name, passive: bits&1 != 0, durable: bits&2 != 0, autoDelete: bits&8 != 0, arguments: arguments,
	})
	if err != nil {
		return err
	}
	ch.send(queueDeclareOK, func(e *encoder) {
		e.shortstr(q.name)
		e.long(uint32(len(q.returned) + len(q.ready)))
		e.long(uint32(len(q.consumers)))
	})
	return nil
}

func (ch *channel) purge(d *decoder) error {
	d.short()
	name := d.shortstr()
	q := ch.conn.broker.queues[name]
	if q == nil {
		return noQueue(name)
	}
	n := len(q.returned) + len(q.ready)
	q.returned, q.ready = nil, nil
	ch.send(queuePurgeOK, func(e *encoder) { e.long(uint32(n)) })
	return nil
}

// delete deletes a queue; one that is not there is no error.
func (ch *channel) delete(d *decoder) error {
	d.short()
	q := ch.conn.broker.queues[d.shortstr()]
	n := 0
	if q != nil {
		n = q.length()
		q.delete()
	}
	ch.send(queueDeleteOK, func(e *encoder) { e.long(uint32(n)) })
	return nil
}
