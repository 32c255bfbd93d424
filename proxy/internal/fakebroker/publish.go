package fakebroker

import "maps"

// content is a message of which not all frames have come.
type content struct {
	exchange, key string
	mandatory     bool
	size          uint64
	properties    *properties // nil before the header
	body          []byte
}

func (ch *channel) beginPublish(d *decoder) error {
	d.short()
	c := &content{exchange: d.shortstr(), key: d.shortstr()}
	bits := d.octet()
	c.mandatory = bits&1 != 0
	if bits&2 != 0 {
		return hard(codeNotImplemented, "NOT_IMPLEMENTED - immediate=true")
	}
	ch.content = c
	ch.conn.block() // before the content is read
	return nil
}

// takeContent takes the header or a part of the body.
func (ch *channel) takeContent(f frame) error {
	c := ch.content
	switch {
	case c == nil, f.kind == frameHeader && c.properties != nil, f.kind == frameBody && c.properties == nil:
		return hard(codeFrameError, "UNEXPECTED_FRAME - unexpected content frame")
	case f.kind == frameHeader:
		size, p, err := contentHeader(f.payload)
		if err != nil {
			return err
		}
		c.size, c.properties = size, &p
	default:
		c.body = append(c.body, f.payload...)
	}
	if uint64(len(c.body)) < c.size {
		return nil
	}
	ch.content = nil
	return ch.publish(c)
}

// publish routes a message. A return comes before the confirm (https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed).
func (ch *channel) publish(c *content) error {
	b := ch.conn.broker
	p := *c.properties
	switch {
	case c.exchange != "":
		return soft(codeNotFound, "NOT_FOUND - no exchange '%s' in vhost '/'", c.exchange)
	case p.userID != "" && p.userID != user:
		return soft(codePrecondition, "PRECONDITION_FAILED - user_id property set to '%s' but authenticated user was '%s'", p.userID, user)
	}
	keys := append([]string{c.key}, carbonCopies(&p)...)
	var targets []*queue
	for _, key := range keys {
		if q := b.queues[key]; q != nil {
			targets = append(targets, q)
		}
	}
	number := ch.published + 1
	if ch.confirming {
		ch.published = number
	}
	answer := func(m method) func() { return func() { ch.confirm(m, number) } }
	for _, q := range targets {
		if q.full() {
			answer(basicNack)()
			return nil
		}
	}
	if len(targets) == 0 {
		if c.mandatory {
			ch.giveBack(c)
		}
		answer(basicAck)()
		return nil
	}
	b.commitLocked(func() {
		for _, q := range targets {
			q.push(&message{exchange: c.exchange, key: c.key, properties: p, body: c.body})
		}
	}, answer(basicAck))
	return nil
}

// carbonCopies are more routing keys (https://www.rabbitmq.com/docs/sender-selected). Those of BCC nobody sees.
func carbonCopies(p *properties) []string {
	var keys []string
	for _, name := range []string{"CC", "BCC"} {
		list, _ := p.headers[name].([]any)
		for _, key := range list {
			if text, ok := key.(string); ok {
				keys = append(keys, text)
			}
		}
	}
	if _, ok := p.headers["BCC"]; ok {
		p.headers = maps.Clone(p.headers)
		delete(p.headers, "BCC")
	}
	return keys
}

// giveBack returns a message that no queue took.
func (ch *channel) giveBack(c *content) {
	ch.send(basicReturn, func(e *encoder) {
		e.short(codeNoRoute)
		e.shortstr("NO_ROUTE")
		e.shortstr(c.exchange)
		e.shortstr(c.key)
	})
	ch.sendContent(&message{properties: *c.properties, body: c.body})
}

// confirm answers a publish, if it is to be answered and the channel is still there.
func (ch *channel) confirm(m method, number uint64) {
	if !ch.confirming || ch.closing || ch.conn.channels[ch.id] != ch || ch.conn.stage != isOpen {
		return
	}
	ch.send(m, func(e *encoder) {
		e.llong(number)
		e.flag(false)
	})
}
