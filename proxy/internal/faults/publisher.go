package faults

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

const (
	rate       = 120 // new messages a second, those of an outage of the broker after it
	batchEvery = 50 * time.Millisecond
	// copies of one message come up to that much later.
	copyWithin = 5 * time.Second
)

// publisher sends messages, some of them twice, and all that was not confirmed again, as a publisher does that must lose
// nothing. It is used by one goroutine.
type publisher struct {
	url     string
	service *service
	draw    *rand.Rand
	prefix  string // of the IDs of a round
	bodies  int    // bytes of the largest body

	client  *testkit.Client // nil after an error
	number  int
	pending []parcel // to be sent when their time has come
	written []check.Publication
}

// parcel is a message and when it is to be sent.
type parcel struct {
	id       check.ID
	message  amqp.Publishing
	due      time.Time
	conflict bool
}

// run publishes until ctx ends, and then what is still to be sent.
func (p *publisher) run(ctx context.Context, patience time.Duration) error {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for began := time.Now(); ctx.Err() == nil; {
		<-tick.C
		for p.number < int(rate*time.Since(began).Seconds()) {
			p.create()
		}
		p.send(time.Now())
	}
	p.pending = slices.DeleteFunc(p.pending, func(one parcel) bool { return one.conflict }) // some wait for work that will never be done
	for deadline := time.Now().Add(patience); len(p.pending) > 0; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d messages could not be published", len(p.pending))
		}
		p.send(time.Now().Add(copyWithin)) // the copies, too
		<-tick.C
	}
	return nil
}

// create makes a new message, and perhaps a copy of it, or one with the same ID and another payload.
func (p *publisher) create() {
	p.number++
	id := check.ID{Queue: queueNames[p.draw.IntN(len(queueNames)-1)], Value: fmt.Sprintf("%s-%06d", p.prefix, p.number)}
	if p.draw.IntN(50) == 0 {
		id.Queue = exhaustQueue
	}
	now := time.Now()
	first := parcel{id: id, message: p.message(id), due: now}
	p.pending = append(p.pending, first)
	switch n := p.draw.IntN(100); {
	case n < 20:
		second := first
		second.due = now.Add(time.Duration(p.draw.Int64N(int64(copyWithin))))
		p.pending = append(p.pending, second)
	case n < 22 && mannerOf(id).destiny() == check.ToBeDone:
		other := first
		other.message.Body = append([]byte("other "), first.message.Body...)
		other.conflict, other.due = true, now.Add(copyWithin)
		p.pending = append(p.pending, other)
	}
}

func (p *publisher) message(id check.ID) amqp.Publishing {
	body := make([]byte, 20+p.draw.IntN(p.bodies))
	for i := range body {
		body[i] = byte(p.draw.Uint32())
	}
	return amqp.Publishing{
		MessageId: id.Value, Body: body, DeliveryMode: amqp.Persistent, ContentType: "application/octet-stream", Type: "order.created", AppId: "faults",
		CorrelationId: fmt.Sprint(p.draw.IntN(1000)), Timestamp: time.Unix(1_700_000_000+int64(p.number), 0),
		Headers: amqp.Table{"number": int64(p.number), "text": strings.Repeat("é", p.draw.IntN(20)), "odd name": true, "list": []any{int32(1), "a"}},
	}
}

// send publishes what is due. What is not confirmed stays to be sent.
func (p *publisher) send(now time.Time) {
	var due []parcel
	var later []parcel
	for _, one := range p.pending {
		switch {
		case one.due.After(now):
			later = append(later, one)
		case one.conflict && !p.worked(one.id): // before that nobody could say which of the two is the other one
			later = append(later, one)
		default:
			due = append(due, one)
		}
	}
	p.pending = later
	for len(due) > 0 {
		n := min(20, len(due))
		if !p.publish(due[:n]) {
			p.pending = append(p.pending, due...)
			return
		}
		due = due[n:]
	}
}

func (p *publisher) worked(id check.ID) bool {
	for _, e := range p.service.Journal.ByKey(id.Value) {
		if !e.Worked.IsZero() {
			return true
		}
	}
	return false
}

// publish reports whether all were confirmed.
func (p *publisher) publish(parcels []parcel) bool {
	messages := make([]testkit.Message, len(parcels))
	for i, one := range parcels {
		messages[i] = testkit.Message{RoutingKey: one.id.Queue, Publishing: one.message}
	}
	began := time.Now()
	err := p.try(messages)
	if errors.Is(err, errNotSent) {
		return false
	}
	for _, one := range parcels {
		p.written = append(p.written, check.Publication{
			ID: one.id, At: began, Confirmed: err == nil, Payload: payloadOf(one.message), Destiny: mannerOf(one.id).destiny(), Conflict: one.conflict,
		})
	}
	return err == nil
}

// errNotSent is of a message that has not left.
var errNotSent = errors.New("no connection to the broker")

func (p *publisher) try(messages []testkit.Message) error {
	if p.client == nil {
		var err error
		if p.client, err = testkit.Dial(p.url); err != nil {
			p.client = nil
			time.Sleep(500 * time.Millisecond) // the broker is away
			return errors.Join(errNotSent, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := p.client.Publish(ctx, messages...)
	if err != nil {
		p.close()
	}
	return err
}

func (p *publisher) close() {
	if p.client != nil {
		_ = p.client.Close()
		p.client = nil
	}
}

// payloadOf digests a message, or a dead letter without what the program adds to it.
func payloadOf(m amqp.Publishing) check.Payload {
	headers := map[string]string{}
	for name, value := range m.Headers {
		if !strings.HasPrefix(name, "x-rabbitonce-") {
			headers[name] = fmt.Sprintf("%T %v", value, value)
		}
	}
	properties := []any{
		m.MessageId, m.ContentType, m.ContentEncoding, m.DeliveryMode, m.Priority, m.CorrelationId, m.ReplyTo, m.Expiration,
		m.Timestamp.Unix(), m.Type, m.UserId, m.AppId, headers,
	}
	text, err := json.Marshal(properties)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return check.Payload{Body: digest(m.Body), Properties: digest(text)}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
