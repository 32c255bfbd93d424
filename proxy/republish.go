package proxy

import (
	"maps"
	"strings"
)

// persistent is the delivery mode of everything that is published here.
const persistent = 2

var (
	// routingHeaders make the broker route a message to the queues they name
	// (https://www.rabbitmq.com/docs/sender-selected).
	routingHeaders = []string{"CC", "BCC"}
	// countHeaders are a queue's own counts of a message; in another queue they mean nothing.
	countHeaders = []string{"x-delivery-count", "x-acquired-count"}
)

// republish is a message as it is published once more, to the dead letters or to a wait queue: its bytes, properties and
// headers, and the exchange and routing key that it came with. What cannot travel as it is goes into headers that begin
// with prefix: an expiration would delete the copy, a user-id must be the publisher's own
// (https://www.rabbitmq.com/docs/validated-user-id), and two headers route. Copies are always persistent. The delivery
// keeps its headers as they are; the copy has a table of its own.
//
// Every type of header value that can arrive can be sent: the library reads and writes the same ones.
func republish(d *delivery, prefix string) letter {
	headers := make(table, len(d.Headers)+16)
	maps.Copy(headers, d.Headers)
	for _, name := range countHeaders {
		delete(headers, name)
	}
	for _, name := range routingHeaders {
		setAside(headers, prefix, name)
	}
	headers[prefix+"exchange"], headers[prefix+"routing-key"] = d.Exchange, d.RoutingKey
	setOrClear(headers, prefix+"expiration", d.Expiration)
	setOrClear(headers, prefix+"user-id", d.UserId)
	return letter{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}

// setAside gives a header the name by which putBack finds it again.
func setAside(headers table, prefix, name string) {
	if value, ok := headers[name]; ok {
		delete(headers, name)
		headers[prefix+strings.ToLower(name)] = value
	}
}

// putBack undoes setAside. Whatever stood there meanwhile is gone.
func putBack(headers table, prefix, name string) {
	delete(headers, name)
	aside := prefix + strings.ToLower(name)
	if value, ok := headers[aside]; ok {
		delete(headers, aside)
		headers[name] = value
	}
}

// setOrClear sets a header, or takes away the one of an earlier time.
func setOrClear(headers table, name, value string) {
	if value == "" {
		delete(headers, name)
		return
	}
	headers[name] = value
}
