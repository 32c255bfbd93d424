package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rabbitonce/dedup"
)

// Ordering is the setting ORDERING: which messages of a queue wait for each other. A message that waits for its next
// attempt keeps its place: the ones behind it wait too, here, and none of them takes the way through a wait queue. The
// zero value is none.
type Ordering struct {
	text string
	keys dedup.Sources // where key:SOURCE looks
}

// ParseOrdering reads none, queue, or key:SOURCE with a place that DEDUP_ID_FROM knows.
func ParseOrdering(text string) (Ordering, error) {
	source, keyed := strings.CutPrefix(text, "key:")
	switch {
	case text == "none":
		return Ordering{}, nil
	case text == "queue":
		return Ordering{text: text}, nil
	case !keyed:
		return Ordering{}, fmt.Errorf("%q is no order: none, queue, or key:SOURCE, like key:header:customer", text)
	case strings.Contains(source, ","):
		return Ordering{}, errors.New("a key has one place: name one, without a comma")
	}
	keys := dedup.ParseSources(source)
	if problems := keys.Problems(); len(problems) > 0 {
		return Ordering{}, errors.New(problems[0])
	}
	return Ordering{text: text, keys: keys}, nil
}

// EnvDecode implements envconfig's decoder.
func (o *Ordering) EnvDecode(value string) (err error) {
	*o, err = ParseOrdering(value)
	return err
}

// String is the setting as it is written.
func (o Ordering) String() string {
	if o.text == "" {
		return "none"
	}
	return o.text
}

// kept tells whether any order is kept.
func (o Ordering) kept() bool { return o.text != "" }

// strict tells whether all messages of the queue stand in one line.
func (o Ordering) strict() bool { return o.text == "queue" }

// lane names the line in which a delivery stands: one for the queue, or one for each key. Deliveries without a key
// share one line, whose name no key can have. The delivery is
// restored by now, since a key may be made of what it was when it was published.
func (q *queue) lane(d *delivery) string {
	if q.cfg.Ordering.strict() {
		return ""
	}
	key, _ := q.cfg.Ordering.keys.Identify(envelope(d))
	return key.Value // never empty when there is one
}

// begin has a delivery handled. It is called by the session's goroutine, in the order of the deliveries: a place in line that
// the handler's goroutine took would be a matter of chance.
func (q *queue) begin(work, hold context.Context, s *session, d *delivery) {
	seen := q.restore(d)
	var p *place
	if q.lanes != nil {
		p = q.lanes.join(q.lane(d))
	}
	q.intake.add(arrival{work: work, hold: hold, session: s, delivery: d, at: time.Now(), seen: seen, place: p})
}

// awaitTurn waits until every delivery before this one is settled for good. The error means that hold ended: what has
// not begun by then begins no more, or it could overtake what is on its way back to the queue.
func (q *queue) awaitTurn(hold context.Context, m *message) error {
	if m.place == nil {
		return nil
	}
	q.entered(m)
	q.held(1)
	defer q.held(-1)
	select {
	case <-m.place.turn:
	case <-hold.Done():
	}
	if hold.Err() != nil {
		return context.Cause(hold)
	}
	return nil
}

// orderingAdvice says at start what an order needs that cannot be seen from here.
func (c *QueueConfig) orderingAdvice() string {
	return fmt.Sprintf("ORDERING=%s of queue %s holds with one replica, or when the queue was declared with x-single-active-consumer; "+
		"messages wait unacknowledged for as long as the retries before them take: give the queue no delivery limit (RabbitMQ 4.0 to 4.2 have one by default) and the broker a consumer_timeout longer than that",
		c.Ordering, c.Name)
}
