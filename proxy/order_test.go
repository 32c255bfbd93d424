package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestParseOrdering(t *testing.T) {
	for _, text := range []string{
		"none", "queue", "key:message-id", "key:correlation-id", "key:header:customer", "key:header:a:b", "key:json:/order/customer", "key:hash",
	} {
		o, err := ParseOrdering(text)
		if err != nil || o.String() != text || o.kept() != (text != "none") || o.strict() != (text == "queue") {
			t.Errorf("%s: got %s, kept %t, strict %t, %v", text, o, o.kept(), o.strict(), err)
		}
	}
	for text, want := range map[string]string{
		"strict":                "no order",
		"Queue":                 "no order",
		"key":                   "no order",
		"header:customer":       "no order",
		"key:":                  "no place",
		"key:customer":          "no place",
		"key:header:":           "no place",
		"key:json:order":        "json:order",
		"key:header:a,header:b": "one place",
	} {
		if _, err := ParseOrdering(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

// TestOrderingOfAQueue: the setting holds for one queue, which takes one message at a time, and says what it needs.
func TestOrderingOfAQueue(t *testing.T) {
	cfg := mustLoad(t, four("QUEUES=orders,mails", "QUEUE_ORDERS_ORDERING=queue", "FORWARD_CONCURRENCY=8"))
	orders, mails := cfg.Queues[0], cfg.Queues[1]
	if orders.Ordering.String() != "queue" || orders.Forward.Concurrency != 1 || orders.Prefetch != 4 {
		t.Errorf("orders: ORDERING %s, concurrency %d, prefetch %d", orders.Ordering, orders.Forward.Concurrency, orders.Prefetch)
	}
	if mails.Ordering.String() != "none" || mails.Forward.Concurrency != 8 || mails.Prefetch != 32 {
		t.Errorf("mails: ORDERING %s, concurrency %d, prefetch %d", mails.Ordering, mails.Forward.Concurrency, mails.Prefetch)
	}
	advice := slices.DeleteFunc(slices.Clone(cfg.Warnings), func(w string) bool { return !strings.Contains(w, "x-single-active-consumer") })
	if len(advice) != 1 || !strings.HasPrefix(advice[0], "ORDERING=queue of queue orders") {
		t.Errorf("advice: %q", advice)
	}
}

func TestLaneOfADelivery(t *testing.T) {
	letter := amqp.Table{
		headerPrefix + "dead-id": "d", headerPrefix + "queue": "orders", headerPrefix + "exchange": "shop", headerPrefix + "routing-key": "order.created",
	}
	plain := &delivery{Exchange: "shop", RoutingKey: "order.created", Body: []byte("x")}
	for name, tt := range map[string]struct {
		ordering string
		one, two *delivery
		same     bool
	}{
		"queue":                      {"queue", &delivery{MessageId: "a"}, &delivery{MessageId: "b"}, true},
		"same key":                   {"key:correlation-id", &delivery{MessageId: "a", CorrelationId: "k"}, &delivery{MessageId: "b", CorrelationId: "k"}, true},
		"other key":                  {"key:correlation-id", &delivery{CorrelationId: "k"}, &delivery{CorrelationId: "K"}, false},
		"number or text":             {"key:header:n", &delivery{Headers: amqp.Table{"n": int32(7)}}, &delivery{Headers: amqp.Table{"n": "7"}}, true},
		"without a key":              {"key:header:n", &delivery{Headers: amqp.Table{"n": " "}}, &delivery{}, true},
		"with and without a key":     {"key:header:n", &delivery{Headers: amqp.Table{"n": "x"}}, &delivery{}, false},
		"pointer":                    {"key:json:/c", &delivery{Body: []byte(`{"c":"1","d":2}`)}, &delivery{Body: []byte(`{"c":"1"}`)}, true},
		"a dead letter put back":     {"key:hash", plain, &delivery{RoutingKey: "orders", Headers: letter, Body: []byte("x")}, true},
		"another body":               {"key:hash", plain, &delivery{Exchange: "shop", RoutingKey: "order.created", Body: []byte("y")}, false},
		"back from a wait queue":     {"key:hash", plain, &delivery{RoutingKey: "orders", Headers: parcel(plain, time.Now()).Headers, Body: []byte("x")}, true},
		"not back from a wait queue": {"key:hash", plain, &delivery{RoutingKey: "orders", Body: []byte("x")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ordering, err := ParseOrdering(tt.ordering)
			if err != nil {
				t.Fatal(err)
			}
			q := &queue{cfg: QueueConfig{Name: "orders", Ordering: ordering}}
			q.restore(tt.one)
			q.restore(tt.two)
			if one, two := q.lane(tt.one), q.lane(tt.two); (one == two) != tt.same {
				t.Errorf("lanes %q and %q, want the same: %t", one, two, tt.same)
			}
		})
	}
}

// TestStrictOrder: attempts of one message follow each other, and nothing comes in between or at the same time. Waits
// longer than RETRY_HOLD stay here.
func TestStrictOrder(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "ORDERING=queue", "RETRY_HOLD=1ms", "RETRY_BACKOFF=5ms", "PREFETCH=200", "FORWARD_TIMEOUT=1s")
	const n = 100
	var want []string
	for i := range n {
		id, codes := fmt.Sprintf("m%d", i), "200"
		want = append(want, id+" 1")
		switch {
		case i%10 == 3:
			codes = "500 503 200"
			want = append(want, id+" 2", id+" 3")
		case i%25 == 7:
			id, codes = fmt.Sprintf("m%d", i-1), "200" // a copy
			want = want[:len(want)-1]
		}
		b.deliver(uint64(i+1), id, codes)
	}
	for tag, verb := range b.settled(t, n) {
		if verb != "ack" {
			t.Errorf("delivery %d: %s", tag, verb)
		}
	}
	if diff := cmp.Diff(want, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if j.most != 1 {
		t.Errorf("%d requests at once", j.most)
	}
	waitUntil(t, func() bool { return lines(b.queue.lanes) == 0 })
}

// TestKeysInParallel: one key that stands still stops no other, and its own messages wait.
func TestKeysInParallel(t *testing.T) {
	gate := make(chan struct{})
	j := &journal{gates: map[string]chan struct{}{"a1": gate}}
	b := newBench(t, j, "ORDERING=key:correlation-id")
	tag := uint64(0)
	send := func(key, id, codes string) {
		tag++
		b.queue.begin(b.work, b.hold, b.session, &delivery{DeliveryTag: tag, MessageId: id, CorrelationId: key, Body: []byte(codes), RoutingKey: "orders"})
	}
	send("a", "a1", "200")
	send("a", "a2", "200")
	send("b", "b1", "500 200")
	send("b", "b2", "200")
	for tag, verb := range b.settled(t, 2) {
		if tag != 3 && tag != 4 || verb != "ack" {
			t.Errorf("delivery %d: %s", tag, verb)
		}
	}
	close(gate)
	b.settled(t, 2)
	for key, want := range map[string][]string{"a": {"a1 1", "a2 1"}, "b": {"b1 1", "b1 2", "b2 1"}} {
		got := slices.DeleteFunc(j.seen(), func(call string) bool { return !strings.HasPrefix(call, key) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests of key %s (-want +got):\n%s", key, diff)
		}
	}
}

// TestADrainEndsTheLine: what is in a POST finishes; what stands behind it begins no more, and is left to the channel.
func TestADrainEndsTheLine(t *testing.T) {
	gate := make(chan struct{})
	j := &journal{gates: map[string]chan struct{}{"m1": gate}}
	b := newBench(t, j, "ORDERING=queue")
	b.deliver(1, "m1", "200")
	b.deliver(2, "m2", "200")
	b.deliver(3, "m3", "200")
	waitUntil(t, func() bool { return len(j.seen()) == 1 && b.queue.waiting.Load() == 2 })
	b.drain(errDraining)
	got := b.settled(t, 2)
	close(gate)
	for tag, verb := range b.settled(t, 1) {
		got[tag] = verb
	}
	if diff := cmp.Diff(map[uint64]string{1: "ack", 2: "back", 3: "back"}, got); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m1 1"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// Catches: the age of a message that comes back from a wait queue forgotten, so that RETRY_MAX_AGE never ends it.
func TestTheAgeOfAMessageSurvivesOrdering(t *testing.T) {
	for _, ordering := range []string{"none", "queue", "key:header:n"} {
		j := &journal{}
		b := newBench(t, j, "ORDERING="+ordering, "DEDUP_ON_MISSING_ID=forward", "RETRY_MAX_AGE=1m", "DEDUP_RETENTION=1h")
		b.queue.publisher = newFakeBroker().publisher(t)
		back := parcel(&delivery{Body: []byte("503 200"), Headers: amqp.Table{"n": int32(1)}}, time.Now().Add(-time.Hour))
		b.queue.begin(b.work, b.hold, b.session, &delivery{DeliveryTag: 1, Headers: back.Headers, Body: back.Body})
		b.settled(t, 1)
		if diff := cmp.Diff([]string{" 1 flagged"}, j.seen()); diff != "" {
			t.Errorf("ORDERING=%s: requests of a message of an hour ago (-want +got):\n%s", ordering, diff)
		}
	}
}
