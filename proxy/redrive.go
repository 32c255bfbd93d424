package proxy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"rabbitonce/dedup"
)

// A dead-letter queue can hold letters of several queues, and two kinds of them: those that were published here, which
// tell everything in headers of their own, and messages that the broker dead-lettered, of which it tells what it knows in
// x-death (https://www.rabbitmq.com/docs/dlx#effects). What follows decides which of them go back, and as what; nothing
// here speaks to the broker.

// deadLetter is a letter as it was read from a dead-letter queue.
type deadLetter struct {
	*delivery
	message  *delivery // as it was before it died; without a trace of the death but its dead-id
	queue    string    // where it died; "" when nothing tells
	reason   string    // one of redriveReasons, or one that a later version knows
	attempts int64     // -1 when nothing tells
	deadAt   time.Time // zero when nothing tells
	byBroker bool      // the broker dead-lettered it: it has no dead-id
	leftOut  bool      // headers of the message did not fit into the letter
	id       string    // as the queue's settings find it; "" when it has none
}

// brokerReasons are why a broker dead-letters, as selections and lists name them.
func brokerReasons() []string {
	return []string{brokerReason("rejected"), brokerReason("expired"), brokerReason("maxlen"), brokerReason("delivery_limit")}
}

func brokerReason(why string) string { return "broker-" + strings.ReplaceAll(why, "_", "-") }

// redriveReasons are the reasons that letters can be selected by.
func redriveReasons() []string {
	var all []string
	for _, r := range dedup.Reasons() {
		all = append(all, r.String())
	}
	return append(all, brokerReasons()...)
}

// readLetter finds out what a letter tells. A header with the source queue's name is this program's and wins: a letter
// that expired in one dead-letter queue and went on to another still belongs where its message died first.
func readLetter(d *delivery, identify func(dedup.Envelope) string) deadLetter {
	l := deadLetter{delivery: d, attempts: -1}
	text := func(name string) string { s, _ := d.Headers[headerPrefix+name].(string); return s }
	_, l.leftOut = d.Headers[headerPrefix+"left-out"]
	death := latestDeath(d.Headers)
	if queue, ours := d.Headers[headerPrefix+"queue"].(string); ours {
		l.queue, l.reason = queue, text("reason")
		if n, ok := d.Headers[headerPrefix+"attempts"].(int64); ok {
			l.attempts = n
		}
		l.deadAt, _ = time.Parse(time.RFC3339Nano, text("dead-at"))
	} else if queue, died := death["queue"].(string); died {
		l.queue, l.byBroker = queue, true
		why, _ := death["reason"].(string)
		l.reason = brokerReason(why)
		l.deadAt, _ = death["time"].(time.Time)
	}
	l.message = beforeDeath(d, death, !l.byBroker)
	l.id = identify(envelope(l.message))
	return l
}

// latestDeath is the broker's note about the last queue that dead-lettered a message: the one that x-last-death-queue and
// -reason name, which are there from RabbitMQ 3.13 on, else the first, which is the latest.
func latestDeath(headers table) table {
	deaths, _ := headers["x-death"].([]any)
	var latest table
	for i, entry := range deaths {
		death, _ := entry.(table)
		last := death["queue"] != nil && death["queue"] == headers["x-last-death-queue"] && death["reason"] == headers["x-last-death-reason"]
		if last {
			return death
		}
		if i == 0 {
			latest = death
		}
	}
	return latest
}

// deathNotes are headers of a letter that tell of the death, or of what the way through the dead letters would have
// changed. The dead-id is none of them, it opens the record; nor is what was left out, which stays true.
var deathNotes = []string{
	"reason", "attempts", "status", "error", "response", "queue", "exchange", "routing-key", "first-seen", "dead-at",
	"expiration", "user-id", "priority",
}

// beforeDeath makes the message of a letter what it was. ours tells that this program wrote the letter.
func beforeDeath(d *delivery, death table, ours bool) *delivery {
	m := *d
	m.Headers = maps.Clone(d.Headers)
	text := func(name string) string { s, _ := d.Headers[headerPrefix+name].(string); return s }
	switch {
	case ours:
		m.Exchange, m.RoutingKey, m.Expiration = text("exchange"), text("routing-key"), text("expiration")
	default:
		m.Exchange, _ = death["exchange"].(string)
		if keys, _ := death["routing-keys"].([]any); len(keys) > 0 {
			m.RoutingKey, _ = keys[0].(string)
		}
		m.Expiration, _ = death["original-expiration"].(string)
	}
	if priority, ok := d.Headers[headerPrefix+"priority"].(uint8); ok {
		m.Priority = priority
	}
	if user := text("user-id"); user != "" {
		m.UserId = user
	}
	for _, name := range routingHeaders {
		if _, ok := m.Headers[headerPrefix+strings.ToLower(name)]; ok {
			putBack(m.Headers, headerPrefix, name)
		}
	}
	for _, name := range deathNotes {
		delete(m.Headers, headerPrefix+name)
	}
	for _, name := range slices.Concat(deathHeaders, countHeaders) {
		delete(m.Headers, name)
	}
	unpark(&m) // it can have died on its way back from a wait queue
	return &m
}

// redriven is the message of a letter as it goes back to its queue. What would act on the way, an expiration that has
// long passed above all, travels as it does to a wait queue, and is put back on arrival.
func (l deadLetter) redriven() letter { return parcel(l.message, time.Now()) }

// moved is a letter as it goes to the end of its own queue: the same, but for what a publisher cannot send in another's
// name, for headers that route, and for a priority, with which it would not go to the end
// (https://www.rabbitmq.com/docs/priority).
func (l deadLetter) moved() letter {
	d := l.delivery
	headers := make(table, len(d.Headers)+3)
	maps.Copy(headers, d.Headers)
	for _, name := range countHeaders {
		delete(headers, name)
	}
	for _, name := range routingHeaders {
		setAside(headers, headerPrefix, name)
	}
	if d.UserId != "" {
		headers[headerPrefix+"user-id"] = d.UserId
	}
	if d.Priority != 0 {
		headers[headerPrefix+"priority"] = d.Priority
	}
	return letter{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type,
		AppId: d.AppId, Body: d.Body,
	}
}

// identifier finds the ID of a message by the queue's settings.
func identifier(cfg dedup.QueueConfig) func(dedup.Envelope) string {
	return func(e dedup.Envelope) string {
		id, ok := cfg.IDFrom.Identify(e)
		if !ok && cfg.OnMissingID == dedup.MissingHash {
			id = dedup.HashID(e)
		}
		return id.Value
	}
}

// selection says which letters go back.
type selection struct {
	queue   string
	reasons []string // empty: every reason
	ids     []string // empty: every ID, and letters without one
}

// selected is what a selection says of a letter.
type selected uint8

const (
	selectedGo    selected = iota // it goes back
	selectedOther                 // it belongs to another queue, or nothing tells that it belongs to this one
	selectedStays                 // it was not asked for
)

func (s selection) judge(l deadLetter) selected {
	switch {
	case l.queue != s.queue:
		return selectedOther
	case len(s.reasons) > 0 && !slices.Contains(s.reasons, l.reason):
		return selectedStays
	case len(s.ids) > 0 && (l.id == "" || !slices.Contains(s.ids, l.id)):
		return selectedStays
	}
	return selectedGo
}
