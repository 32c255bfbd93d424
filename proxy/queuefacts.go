package proxy

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// A client cannot ask RabbitMQ how a queue is set up. But the broker compares a declaration with the queue that is
// there, and refuses one that differs with words that name the first difference and the queue's own value:
//
//	PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'orders' in vhost '/': received none but
//	current is the value '5' of type 'signedint'
//
// Declared again with that value, it names the next one, until nothing differs
// (https://www.rabbitmq.com/docs/queues#property-equivalence). It takes the configure permission, and changes nothing.

// neverDeclared is an argument that makes sure of that if the queue is deleted meanwhile: it belongs to streams, so no
// classic or quorum queue can be declared with it, while a queue of these types that is there is not compared by it.
// RabbitMQ 3.10, 4.0 and 4.3 do so; others, such as a delivery limit that is no number, 3.10 takes without a word.
const neverDeclared = "x-max-age"

// queueFacts is how a queue was declared. What a policy adds is not seen.
type queueFacts struct {
	durable, autoDelete bool
	arguments           table
}

// queueTypes are those that can be consumed.
const (
	typeClassic = "classic"
	typeQuorum  = "quorum"
	typeStream  = "stream"
)

// errNotDeclared is the broker's refusal to declare a queue that is not there.
var errNotDeclared = errors.New("the queue is not there")

// maxDifferences bounds how often a declaration is repeated: no queue has more arguments.
const maxDifferences = 30

// readFacts finds out how a queue of a known type was declared. declare declares it with some arguments, and is given
// those that can never create a queue.
func readFacts(kind string, declare func(durable, autoDelete bool, arguments table) error) (queueFacts, error) {
	facts := queueFacts{durable: true, arguments: table{"x-queue-type": kind}}
	for range maxDifferences {
		arguments := maps.Clone(facts.arguments)
		arguments[neverDeclared] = "?"
		err := declare(facts.durable, facts.autoDelete, arguments)
		if err == nil {
			return facts, nil
		}
		d, ok := parseDifference(err)
		if !ok || !facts.learn(d) {
			return queueFacts{}, err
		}
	}
	return queueFacts{}, errors.New("the broker names no end of differences")
}

// learn takes over the queue's own value. It reports whether that is news.
func (f *queueFacts) learn(d difference) bool {
	switch d.name {
	case "durable", "auto_delete":
		own := &f.durable
		if d.name == "auto_delete" {
			own = &f.autoDelete
		}
		news := *own != (d.current == "true")
		*own = d.current == "true"
		return news
	}
	_, known := f.arguments[d.name]
	f.arguments[d.name] = d.current
	return !known && d.current != nil
}

// difference is the first thing in which a declaration and the queue differ.
type difference struct {
	name    string
	current any // the queue's own value; nil: it has no such argument
}

// The broker's words (rabbit_misc:assert_args_equivalence and protocol_error in
// https://github.com/rabbitmq/rabbitmq-server/tree/main/deps/rabbit_common/src/rabbit_misc.erl).
var (
	differs    = regexp.MustCompile(`(?s)inequivalent arg '(.+?)' for .*: received (?:none|'.*'|the value '.*' of type '\w+') but current is (.*)$`)
	typedValue = regexp.MustCompile(`(?s)^the value '(.*)' of type '(\w+)'$`)
	sameType   = regexp.MustCompile(`(?s)^'(.*)'$`)
)

// parseDifference reads the broker's refusal. Words that were cut off, as after a long queue name, are not understood.
func parseDifference(err error) (difference, bool) {
	e, ok := errors.AsType[*closing](err)
	if !ok || e.Code != preconditionFailed {
		return difference{}, false
	}
	m := differs.FindStringSubmatch(e.Reason)
	if m == nil {
		return difference{}, false
	}
	current, ok := parseValue(m[2])
	return difference{name: m[1], current: current}, ok
}

// parseValue reads one side of a difference: none, a value with its type, or one of the type that was sent.
func parseValue(words string) (value any, ok bool) {
	if words == "none" {
		return nil, true
	}
	if m := sameType.FindStringSubmatch(words); m != nil {
		return m[1], true
	}
	m := typedValue.FindStringSubmatch(words)
	if m == nil {
		return nil, false
	}
	switch m[2] {
	case "longstr":
		return m[1], true
	case "bool":
		return m[1] == "true", true
	case "signedint", "unsignedint", "long", "short", "byte", "unsignedbyte", "unsignedshort":
		n, err := strconv.ParseInt(m[1], 10, 64)
		return n, err == nil
	}
	return nil, false // a list or a table: no argument of a queue that matters here
}

// number is an argument that is one.
func (f queueFacts) number(name string) (n int64, ok bool) {
	n, ok = f.arguments[name].(int64)
	return n, ok
}

func (f queueFacts) has(name string) bool {
	_, ok := f.arguments[name]
	return ok
}

// String lists what was declared, for a line of text.
func (f queueFacts) String() string {
	text := "durable"
	if !f.durable {
		text = "not durable"
	}
	if f.autoDelete {
		text += ", auto-delete"
	}
	for _, name := range slices.Sorted(maps.Keys(f.arguments)) {
		if name != "x-queue-type" {
			text += fmt.Sprintf(", %s %v", name, f.arguments[name])
		}
	}
	return text
}
