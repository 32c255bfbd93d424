package fakebroker

import (
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deadLetter takes a message out of the queue for good: to where x-dead-letter-exchange and -routing-key lead, or nowhere. With
// the strategy at-least-once a message that no queue takes is kept until one does
// (https://www.rabbitmq.com/docs/quorum-queues#dead-lettering).
func (q *queue) deadLetter(m *message, reason string) {
	exchange, ok := q.arguments["x-dead-letter-exchange"].(string)
	if !ok {
		return
	}
	key, ok := q.arguments["x-dead-letter-routing-key"].(string)
	if !ok {
		key = m.key
	}
	dead := &message{exchange: exchange, key: key, body: m.body, properties: withDeath(m, q.name, reason)}
	to := q.broker.queues[key]
	keeps := q.arguments["x-dead-letter-strategy"] == "at-least-once"
	switch {
	case exchange != "" || to == nil || to.full():
		if keeps {
			q.stuck = append(q.stuck, m)
		}
	case inCircle(m, key, reason) && !keeps: // nobody would end it (https://www.rabbitmq.com/docs/dlx#effects)
	default:
		to.push(dead)
	}
}

// retryStuck is for when another queue was declared.
func (q *queue) retryStuck() {
	stuck := q.stuck
	q.stuck = nil
	for _, m := range stuck {
		q.deadLetter(m, "expired")
	}
}

// withDeath is what a dead letter's headers say of it (https://www.rabbitmq.com/docs/dlx#effects).
func withDeath(m *message, queue, reason string) properties {
	p := m.properties
	deaths, _ := p.headers["x-death"].([]any)
	event := amqp.Table{
		"queue": queue, "reason": reason, "count": int64(1), "exchange": m.exchange, "routing-keys": []any{m.key},
		"time": time.Unix(time.Now().Unix(), 0),
	}
	if p.expiration != "" {
		event["original-expiration"] = p.expiration
		p.expiration = ""
		p.flags &^= flagExpiration
	}
	rest := []any{}
	for _, d := range deaths {
		if old, ok := d.(amqp.Table); ok && old["queue"] == queue && old["reason"] == reason {
			n, _ := old["count"].(int64)
			event["count"] = n + 1
			continue
		}
		rest = append(rest, d)
	}
	p = p.with("x-death", append([]any{event}, rest...))
	for name, value := range map[string]string{"exchange": m.exchange, "queue": queue, "reason": reason} {
		if _, ok := p.headers["x-first-death-"+name]; !ok {
			p = p.with("x-first-death-"+name, value)
		}
		p = p.with("x-last-death-"+name, value)
	}
	return p
}

// inCircle tells whether a message comes back to a queue that it died in before, and nobody ever rejected it.
func inCircle(m *message, to, reason string) bool {
	deaths, _ := m.properties.headers["x-death"].([]any)
	been := false
	for _, d := range deaths {
		death, _ := d.(amqp.Table)
		if death["reason"] == "rejected" {
			return false
		}
		been = been || death["queue"] == to
	}
	return been && reason != "rejected"
}

func parseMilliseconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * time.Millisecond, err == nil
}

// integer reads a number of any width.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case byte:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}
