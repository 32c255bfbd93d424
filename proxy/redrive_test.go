package proxy

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
)

// byMessageID is how most queues find IDs.
func byMessageID(e dedup.Envelope) string { return e.MessageID }

// odd is a message with everything that changes on the way through the dead letters and back.
func odd() delivery {
	return delivery{
		Headers: amqp.Table{
			"a": int32(1), "nested": amqp.Table{"list": []any{uint16(7), nil, []byte{0, 1}, amqp.Decimal{Scale: 2, Value: -314}}},
			"CC": []any{"other"}, "x-rabbitonce-not-ours": "kept",
		},
		ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "60000",
		MessageId: "m", Timestamp: time.Unix(1700000000, 0), Type: "t", UserId: "u", AppId: "app", Exchange: "ex", RoutingKey: "rk", Body: []byte{0, 0xff},
	}
}

// arrived is a publishing as a broker delivers it from a queue.
func arrived(m letter, queue string) delivery {
	return delivery{
		Headers: m.Headers, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: m.DeliveryMode, Priority: m.Priority,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, Expiration: m.Expiration, MessageId: m.MessageId, Timestamp: m.Timestamp, Type: m.Type,
		UserId: m.UserId, AppId: m.AppId, Body: m.Body, RoutingKey: queue,
	}
}

// letterOf is the dead letter that a queue makes of a message.
func letterOf(queueName string, m *delivery, o obituary) delivery {
	q := &queue{cfg: QueueConfig{Name: queueName}, publisher: newPublisher(&broker{})}
	sent, _ := q.compose(&message{delivery: m}, o)
	return arrived(sent, queueName+".dead")
}

// rejectedByBroker is a message that the broker dead-lettered from a queue.
func rejectedByBroker(queue, why string, m delivery) delivery {
	death := amqp.Table{
		"queue": queue, "reason": why, "time": time.Unix(1700000100, 0), "count": int64(1), "exchange": m.Exchange, "routing-keys": []any{m.RoutingKey},
	}
	if m.Expiration != "" {
		death["original-expiration"] = m.Expiration
		m.Expiration = ""
	}
	m.Headers["x-death"] = []any{death, amqp.Table{"queue": "earlier", "reason": "expired", "exchange": "old"}}
	m.Headers["x-first-death-queue"], m.Headers["x-delivery-count"] = "earlier", int64(1)
	m.Exchange, m.RoutingKey = "dlx", "dead"
	return m
}

var sameMessage = cmp.Options{cmpopts.IgnoreFields(delivery{}, "Acknowledger")}

// TestRedrivenIsWhatItWas takes a message through its letter and back into its queue: what the pipeline works with is the
// same as before, whoever wrote the letter, and nothing acts on it on the way.
func TestRedrivenIsWhatItWas(t *testing.T) {
	full := obituary{
		reason: dedup.ReasonRejected, deadID: "0011223344556677", attempts: 3, status: 400, problem: "why", response: []byte("what"), first: time.Now(),
	}
	for name, tt := range map[string]struct {
		die  func(m delivery) delivery
		kept amqp.Table // of the letter's own headers
	}{
		"written here":  {func(m delivery) delivery { return letterOf("orders", &m, full) }, amqp.Table{"x-rabbitonce-dead-id": full.deadID}},
		"without an ID": {func(m delivery) delivery { return letterOf("orders", &m, obituary{reason: dedup.ReasonMissingID}) }, nil},
		"by the broker": {func(m delivery) delivery { return rejectedByBroker("orders", "rejected", m) }, nil},
		"by the broker, on the way back from a wait queue": {func(m delivery) delivery {
			return rejectedByBroker("orders", "rejected", arrived(parcel(&m, time.Now()), "orders"))
		}, nil},
		"written here, and moved": {func(m delivery) delivery {
			d := letterOf("orders", &m, full)
			return arrived(readLetter(&d, byMessageID).moved(), "orders.dead")
		}, amqp.Table{"x-rabbitonce-dead-id": full.deadID}},
		"by the broker, and moved": {func(m delivery) delivery {
			d := rejectedByBroker("orders", "expired", m)
			return arrived(readLetter(&d, byMessageID).moved(), "orders.dead")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dead := tt.die(odd())
			l := readLetter(&dead, byMessageID)
			if l.queue != "orders" {
				t.Fatalf("it died in %q", l.queue)
			}
			sent := l.redriven()
			if sent.Expiration != "" || sent.UserId != "" || sent.Headers["CC"] != nil || sent.Headers["x-death"] != nil || sent.DeliveryMode != persistent {
				t.Errorf("on the way: expiration %q, user-id %q, mode %d, headers %v", sent.Expiration, sent.UserId, sent.DeliveryMode, sent.Headers)
			}
			back := arrived(sent, "orders")
			unpark(&back)
			(&queue{cfg: QueueConfig{Name: "orders"}}).unletter(&back)
			want := odd()
			for name, value := range tt.kept {
				want.Headers[name] = value
			}
			if diff := cmp.Diff(want, back, sameMessage); diff != "" {
				t.Errorf("after it was put back (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRedrivenTellsNothingOfItsDeath holds the list of what is taken off to what letters carry.
func TestRedrivenTellsNothingOfItsDeath(t *testing.T) {
	var stays []string
	for _, name := range letterHeaders() {
		if !slices.Contains(deathNotes, name[len(headerPrefix):]) {
			stays = append(stays, name)
		}
	}
	slices.Sort(stays)
	if diff := cmp.Diff([]string{"x-rabbitonce-dead-id", "x-rabbitonce-left-out"}, stays); diff != "" {
		t.Errorf("headers of a letter that stay (-want +got):\n%s", diff)
	}
}

// TestMovedIsTheSameLetter: at the end of the dead letters it reads as it did before.
func TestMovedIsTheSameLetter(t *testing.T) {
	m := odd()
	before := letterOf("orders", &m, obituary{reason: dedup.ReasonMaxAge, deadID: "00", attempts: 2, status: 500})
	before.Headers["x-delivery-count"] = int64(2)
	after := arrived(readLetter(&before, byMessageID).moved(), "orders.dead")
	delete(before.Headers, "x-delivery-count")
	if before.Headers["x-rabbitonce-priority"] = uint8(3); after.Priority != 0 { // it would not go to the end
		t.Errorf("moved with priority %d", after.Priority)
	}
	before.Priority = 0
	if diff := cmp.Diff(before, after, sameMessage); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	foreign := rejectedByBroker("orders", "rejected", odd())
	moved := readLetter(&foreign, byMessageID).moved()
	if moved.UserId != "" || moved.Headers["CC"] != nil || moved.Headers["x-death"] == nil || moved.Headers["x-delivery-count"] != nil {
		t.Errorf("moved: user-id %q, headers %v", moved.UserId, moved.Headers)
	}
}

func TestReadLetter(t *testing.T) {
	m := odd()
	written := letterOf("orders", &m, obituary{reason: dedup.ReasonAttemptsExhausted, deadID: "00", attempts: 6})
	expired := rejectedByBroker("orders.dead", "expired", letterOf("orders", &m, obituary{reason: dedup.ReasonConflict}))
	broker := rejectedByBroker("orders", "delivery_limit", odd())
	named := rejectedByBroker("orders", "rejected", odd()) // the first is another's
	named.Headers["x-last-death-queue"], named.Headers["x-last-death-reason"] = "earlier", "expired"
	shortened := delivery{MessageId: "m", Headers: amqp.Table{"x-rabbitonce-queue": "orders", "x-rabbitonce-reason": "rejected", "x-rabbitonce-left-out": "a"}}
	type told struct {
		queue, reason, id string
		attempts          int64
		byBroker, leftOut bool
		dated             bool
	}
	for name, tt := range map[string]struct {
		d    delivery
		want told
	}{
		"written here":             {written, told{"orders", "attempts-exhausted", "m", 6, false, false, true}},
		"expired in another queue": {expired, told{"orders", "conflict", "m", 0, false, false, true}},
		"by the broker":            {broker, told{"orders", "broker-delivery-limit", "m", -1, true, false, true}},
		"by the broker, named":     {named, told{"earlier", "broker-expired", "m", -1, true, false, false}},
		"shortened":                {shortened, told{"orders", "rejected", "m", -1, false, true, false}},
		"a stranger":               {delivery{MessageId: "m"}, told{id: "m", attempts: -1}},
		"x-death of another shape": {delivery{Headers: amqp.Table{"x-death": "once"}}, told{attempts: -1}},
		"x-death of nobody":        {delivery{Headers: amqp.Table{"x-death": []any{amqp.Table{"queue": int32(1)}}}}, told{attempts: -1}},
	} {
		l := readLetter(&tt.d, byMessageID)
		got := told{l.queue, l.reason, l.id, l.attempts, l.byBroker, l.leftOut, !l.deadAt.IsZero()}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestSelection(t *testing.T) {
	letters := map[string]deadLetter{
		"rejected":     {queue: "orders", reason: "rejected", id: "a"},
		"unknown":      {queue: "orders", reason: "unknown-outcome", id: "b"},
		"without ID":   {queue: "orders", reason: "missing-id"},
		"another's":    {queue: "billing", reason: "rejected", id: "a"},
		"a stranger's": {id: "a"},
	}
	for name, tt := range map[string]struct {
		s     selection
		going []string
	}{
		"all":       {selection{queue: "orders"}, []string{"rejected", "unknown", "without ID"}},
		"a reason":  {selection{queue: "orders", reasons: []string{"max-age", "rejected"}}, []string{"rejected"}},
		"IDs":       {selection{queue: "orders", ids: []string{"b", "c"}}, []string{"unknown"}},
		"both":      {selection{queue: "orders", ids: []string{"b"}, reasons: []string{"rejected"}}, nil},
		"another's": {selection{queue: "billing"}, []string{"another's"}},
	} {
		var going []string
		for who, l := range letters {
			switch got := tt.s.judge(l); {
			case got == selectedGo:
				going = append(going, who)
			case (got == selectedOther) != (l.queue != tt.s.queue):
				t.Errorf("%s: %s is judged %d", name, who, got)
			}
		}
		slices.Sort(going)
		if diff := cmp.Diff(tt.going, going); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestIdentifierOfLetters(t *testing.T) {
	e := dedup.Envelope{Body: []byte("x")}
	hash := identifier(dedup.QueueConfig{IDFrom: dedup.ParseSources("message-id"), OnMissingID: dedup.MissingHash})(e)
	none := identifier(dedup.QueueConfig{IDFrom: dedup.ParseSources("message-id"), OnMissingID: dedup.MissingDeadletter})(e)
	if hash != dedup.HashID(e).Value || none != "" {
		t.Errorf("without an ID: hash %q, none %q", hash, none)
	}
}

func TestListFlag(t *testing.T) {
	var l listFlag
	for _, text := range []string{"a,b", `c\,d,e`} {
		if err := l.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(listFlag{"a", "b", "c,d", "e"}, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "a,", ",a"} {
		if new(listFlag).Set(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
