package proxy

import (
	"strings"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// message is a delivery on its way through the pipeline.
type message struct {
	*delivery
	session     *session
	place       *place // in line, under ORDERING
	id          dedup.ID
	key         string // of its record; "" when it has no ID and is forwarded without a claim
	fingerprint dedup.Fingerprint
	received    time.Time
	seen        time.Time    // when it first came, wait queues not counted
	busySince   time.Time    // when it was first found with somebody else; zero when it was not
	unclaimed   dedup.Record // counts of the attempts made without a claim, which no store keeps
	lookups     int          // lookups without a clear answer
	entering    bool         // it waits for its first slot, as far as the intake knows
	met         bool         // it was counted as a copy, or was claimed: it is counted as a copy once at most
}

// Headers of dead letters.
const headerPrefix = "x-rabbitonce-"

// restore makes a delivery what it was when it was published, and tells when it was first seen. It changes the delivery.
func (q *queue) restore(d *delivery) (seen time.Time) {
	seen, parked := unpark(d)
	if !parked {
		seen = time.Now()
	}
	q.unletter(d)
	return seen
}

// identify reads the message's ID by DEDUP_ID_FROM. ok is false when it has none.
func (q *queue) identify(a arrival) (m *message, ok bool) {
	m = &message{
		delivery: a.delivery, session: a.session, place: a.place, received: a.at, seen: a.seen, entering: true, lookups: takeLookups(a.delivery),
	}
	id, ok := q.cfg.Dedup.IDFrom.Identify(envelope(a.delivery))
	if ok {
		q.setID(m, id)
	}
	return m, ok
}

// takeLookups takes off what park noted of lookups, so that their pauses grow on.
func takeLookups(d *delivery) int {
	n, _ := d.Headers[parkedLookups].(int64)
	delete(d.Headers, parkedLookups)
	return int(n)
}

// unletter gives a dead letter of this queue that was put back the exchange and routing key that it had, which any
// tool changes on the way: an ID made by hash covers them. It changes the delivery.
func (q *queue) unletter(d *delivery) {
	if _, ok := d.Headers[headerPrefix+"dead-id"].(string); !ok || d.Headers[headerPrefix+"queue"] != q.cfg.Name {
		return
	}
	exchange, hasExchange := d.Headers[headerPrefix+"exchange"].(string)
	key, hasKey := d.Headers[headerPrefix+"routing-key"].(string)
	if hasExchange && hasKey {
		d.Exchange, d.RoutingKey = exchange, key
	}
}

func (q *queue) setID(m *message, id dedup.ID) {
	m.id = id
	m.key = dedup.Key(q.cfg.Dedup.Prefix, q.cfg.Dedup.Consumer, id)
	m.fingerprint = dedup.FingerprintOf(m.Body)
}

func envelope(d *delivery) dedup.Envelope {
	return dedup.Envelope{
		MessageID: d.MessageId, CorrelationID: d.CorrelationId, Type: d.Type,
		Exchange: d.Exchange, RoutingKey: d.RoutingKey, Headers: d.Headers, Body: d.Body,
	}
}

// deadID is the dead-id that a message brings back with it when it was put back from the dead letters.
func (m *message) deadID() string {
	id, _ := m.Headers[headerPrefix+"dead-id"].(string)
	return id
}

// busyTooLong tells whether the message has been with somebody else for longer than hold.
func (m *message) busyTooLong(hold time.Duration) bool {
	if m.busySince.IsZero() {
		m.busySince = time.Now()
	}
	return time.Since(m.busySince) > hold
}

// logID is the ID as log lines show it, shortened and on one line.
func (m *message) logID() string {
	const most = 200
	id := m.id.Value
	if len(id) > most {
		id = id[:most] + "..."
	}
	return strings.ToValidUTF8(id, "?")
}

// request is the HTTP request of one attempt. The error is a message that has nothing to send.
func (q *queue) request(m *message, attempt int, unknown bool, timeout time.Duration) (*forward.Request, error) {
	body, contentType, err := q.cfg.Body.of(m.Body, m.ContentType, q.cfg.Forward.ContentType)
	if err != nil {
		return nil, err
	}
	return &forward.Request{
		Queue: q.cfg.Name, Exchange: m.Exchange, RoutingKey: m.RoutingKey,
		IdempotencyKey: m.id.Value, Attempt: attempt, OutcomeUnknown: unknown, Timeout: timeout,
		MessageID: m.MessageId, CorrelationID: m.CorrelationId, Type: m.Type, AppID: m.AppId, ReplyTo: m.ReplyTo,
		ContentType: contentType, ContentEncoding: m.ContentEncoding,
		Timestamp: m.Timestamp, Priority: m.Priority, Redelivered: m.Redelivered,
		Headers: plainHeaders(m.Headers), Body: body,
	}, nil
}
