package fakebroker

import (
	"fmt"
	"maps"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// declaration is what a client says of a queue.
type declaration struct {
	name                string
	passive             bool
	durable, autoDelete bool
	arguments           amqp.Table
}

// compared are the arguments in which a declaration has to agree with the queue that is there
// (https://www.rabbitmq.com/docs/queues#property-equivalence).
var compared = []string{
	"x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-delivery-limit", "x-expires", "x-max-length",
	"x-max-length-bytes", "x-max-priority", "x-message-ttl", "x-overflow", "x-queue-mode", "x-queue-type", "x-single-active-consumer",
}

func (b *Broker) declareLocked(d declaration) (*queue, error) {
	q := b.queues[d.name]
	switch {
	case q == nil && d.passive:
		return nil, noQueue(d.name)
	case q != nil && d.passive:
		return q, nil
	case q != nil:
		return q, q.agrees(d)
	}
	if err := checkName(d.name); err != nil {
		return nil, err
	}
	kind, ok := d.arguments["x-queue-type"].(string)
	if !ok {
		kind = classic
	}
	switch {
	case kind != classic && kind != quorum:
		return nil, hard(codeNotImplemented, "NOT_IMPLEMENTED - queue type %s", kind)
	case kind == quorum && !d.durable:
		return nil, soft(codePrecondition, "PRECONDITION_FAILED - invalid property 'non-durable' for queue '%s' in vhost '/'", d.name)
	}
	for name := range d.arguments {
		if !slices.Contains(compared, name) {
			return nil, soft(codePrecondition, "PRECONDITION_FAILED - invalid arg '%s' for queue '%s' in vhost '/' of queue type rabbit_%s_queue", name, d.name, kind)
		}
	}
	q = &queue{broker: b, name: d.name, kind: kind, durable: d.durable, autoDelete: d.autoDelete, arguments: maps.Clone(d.arguments), limit: b.options.DeliveryLimit}
	if limit, ok := integer(d.arguments["x-delivery-limit"]); ok {
		q.limit = limit
	}
	b.queues[d.name] = q
	for _, other := range b.queues {
		other.retryStuck()
	}
	return q, nil
}

func noQueue(name string) error {
	return soft(codeNotFound, "NOT_FOUND - no queue '%s' in vhost '/'", name)
}

// agrees compares a declaration with the queue. Of an argument that says what is so anyway nothing is said: a queue without a
// type is a classic one.
func (q *queue) agrees(d declaration) error {
	differs := func(name, received, current string) error {
		return soft(codePrecondition, "PRECONDITION_FAILED - inequivalent arg '%s' for queue '%s' in vhost '/': received %s but current is %s", name, q.name, received, current)
	}
	switch {
	case q.durable != d.durable:
		return differs("durable", fmt.Sprintf("'%t'", d.durable), fmt.Sprintf("'%t'", q.durable))
	case q.autoDelete != d.autoDelete:
		return differs("auto_delete", fmt.Sprintf("'%t'", d.autoDelete), fmt.Sprintf("'%t'", q.autoDelete))
	}
	for _, name := range compared {
		theirs, own := d.arguments[name], q.arguments[name]
		if name == "x-queue-type" {
			theirs, own = orClassic(theirs), orClassic(own)
		}
		n, isNumber := integer(theirs)
		m, wasNumber := integer(own)
		if theirs == own || isNumber && wasNumber && n == m {
			continue
		}
		return differs(name, describe(theirs, own), describe(own, theirs))
	}
	return nil
}

func orClassic(kind any) any {
	if kind == nil {
		return classic
	}
	return kind
}

// describe words one side of a difference: without its type where both have the same.
func describe(v, other any) string {
	switch {
	case v == nil:
		return "none"
	case typeName(v) == typeName(other):
		return fmt.Sprintf("'%v'", v)
	}
	return fmt.Sprintf("the value '%v' of type '%s'", v, typeName(v))
}

// typeName is how the broker calls the type of a field.
func typeName(v any) string {
	switch v.(type) {
	case string:
		return "longstr"
	case bool:
		return "bool"
	case int64:
		return "long"
	case int32:
		return "signedint"
	case int16:
		return "short"
	case int8, byte:
		return "byte"
	}
	return "unknown"
}
