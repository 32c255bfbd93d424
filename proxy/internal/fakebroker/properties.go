package fakebroker

import (
	"maps"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// message is one in a queue. What a queue counts of it is of that queue alone.
type message struct {
	exchange, key string
	properties    properties
	body          []byte

	place       uint64    // in the order of the queue
	expires     time.Time // zero: never
	redelivered bool
	returns     int64 // how often it came back, as x-delivery-count says it
}

// properties are those of a content header.
type properties struct {
	contentType, contentEncoding   string
	headers                        amqp.Table // nil: none
	deliveryMode, priority         byte
	correlationID, replyTo         string
	expiration, messageID          string
	timestamp                      uint64
	kind, userID, appID, clusterID string
	flags                          uint16
}

// The flags, one a property, in their order on the wire (section 4.2.6.1 of the specification).
const (
	flagContentType = 1 << (15 - iota)
	flagContentEncoding
	flagHeaders
	flagDeliveryMode
	flagPriority
	flagCorrelationID
	flagReplyTo
	flagExpiration
	flagMessageID
	flagTimestamp
	flagType
	flagUserID
	flagAppID
	flagClusterID
)

// contentHeader reads the payload of a header frame.
func contentHeader(payload []byte) (size uint64, p properties, err error) {
	d := decoder{data: payload}
	d.take(4) // class and weight
	size = d.llong()
	p.flags = d.short()
	text := func(flag uint16, to *string) {
		if p.flags&flag != 0 {
			*to = d.shortstr()
		}
	}
	number := func(flag uint16, to *byte) {
		if p.flags&flag != 0 {
			*to = d.octet()
		}
	}
	text(flagContentType, &p.contentType)
	text(flagContentEncoding, &p.contentEncoding)
	if p.flags&flagHeaders != 0 {
		p.headers = d.table()
	}
	number(flagDeliveryMode, &p.deliveryMode)
	number(flagPriority, &p.priority)
	text(flagCorrelationID, &p.correlationID)
	text(flagReplyTo, &p.replyTo)
	text(flagExpiration, &p.expiration)
	text(flagMessageID, &p.messageID)
	if p.flags&flagTimestamp != 0 {
		p.timestamp = d.llong()
	}
	text(flagType, &p.kind)
	text(flagUserID, &p.userID)
	text(flagAppID, &p.appID)
	text(flagClusterID, &p.clusterID)
	return size, p, d.err
}

// encode writes the payload of a header frame.
func (p *properties) encode(size int) []byte {
	flags := p.flags &^ flagHeaders
	if p.headers != nil {
		flags |= flagHeaders
	}
	var e encoder
	e.short(basicPublish.class)
	e.short(0)
	e.llong(uint64(size))
	e.short(flags)
	text := func(flag uint16, v string) {
		if flags&flag != 0 {
			e.shortstr(v)
		}
	}
	number := func(flag uint16, v byte) {
		if flags&flag != 0 {
			e.octet(v)
		}
	}
	text(flagContentType, p.contentType)
	text(flagContentEncoding, p.contentEncoding)
	if p.headers != nil {
		e.table(p.headers)
	}
	number(flagDeliveryMode, p.deliveryMode)
	number(flagPriority, p.priority)
	text(flagCorrelationID, p.correlationID)
	text(flagReplyTo, p.replyTo)
	text(flagExpiration, p.expiration)
	text(flagMessageID, p.messageID)
	if flags&flagTimestamp != 0 {
		e.llong(p.timestamp)
	}
	text(flagType, p.kind)
	text(flagUserID, p.userID)
	text(flagAppID, p.appID)
	text(flagClusterID, p.clusterID)
	return e.data
}

// with returns the properties with one more header.
func (p properties) with(name string, value any) properties {
	headers := maps.Clone(p.headers)
	if headers == nil {
		headers = amqp.Table{}
	}
	headers[name] = value
	p.headers = headers
	return p
}
