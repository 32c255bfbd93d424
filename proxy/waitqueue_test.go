package proxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
)

func TestWaitSteps(t *testing.T) {
	s := time.Second
	for name, tt := range map[string]struct {
		ladder Ladder
		hold   time.Duration
		want   []time.Duration
	}{
		"the default":        {Ladder{s, 5 * s, 30 * s, 120 * s, 600 * s}, 5 * s, []time.Duration{5 * s, 30 * s, 120 * s, 600 * s}},
		"any order, repeats": {Ladder{60 * s, 31 * s, 60 * s}, 5 * s, []time.Duration{5 * s, 30 * s, 31 * s, 60 * s}},
		"nothing longer":     {Ladder{s}, 5 * s, []time.Duration{5 * s, 30 * s}},
		"few and long":       {Ladder{s, 3600 * s}, 5 * s, []time.Duration{5 * s, 30 * s, 3600 * s}},
		"a long hold":        {Ladder{s}, 60 * s, []time.Duration{30 * s, 60 * s}},
		"hold is a step":     {Ladder{5 * s, 30 * s}, 5 * s, []time.Duration{5 * s, 30 * s}},
	} {
		if diff := cmp.Diff(tt.want, waitSteps(tt.ladder, tt.hold)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	q := &queue{waitSteps: []time.Duration{5 * s, 30 * s, 120 * s}}
	q.cfg.Retry.Hold = 5 * s // a step for what makes room, not for a pause
	for pause, want := range map[time.Duration]time.Duration{
		0: 0, 6 * s: 0, 29 * s: 0, 31 * s: 30 * s, 120 * s: 120 * s, time.Hour: 120 * s, // never later than asked
	} {
		if got, ok := q.waitStep(pause); got != want || ok != (want > 0) {
			t.Errorf("step for %v is %v %v, want %v", pause, got, ok, want)
		}
	}
}

func TestWaitQueueNames(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * time.Second: "q.wait.30s", 2 * time.Minute: "q.wait.2m", 90 * time.Second: "q.wait.1m30s", time.Hour: "q.wait.1h",
		10 * time.Hour: "q.wait.10h", 500 * time.Millisecond: "q.wait.500ms", time.Hour + time.Second: "q.wait.1h0m1s", 100 * time.Second: "q.wait.1m40s",
	} {
		if got := waitQueue("q", d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestALetterPutBackIsWhatItWas also holds an ID made by hash, which covers exchange and routing key.
func TestALetterPutBackIsWhatItWas(t *testing.T) {
	q := &queue{cfg: QueueConfig{Name: "orders"}, publisher: newPublisher(&broker{})}
	before := delivery{Exchange: "ex", RoutingKey: "rk", Body: []byte("b")}
	sent, _ := q.compose(&message{delivery: &before}, obituary{deadID: "0011223344556677"})
	back := delivery{Headers: sent.Headers, RoutingKey: "orders", Body: sent.Body}
	q.unletter(&back)
	if got, want := dedup.HashID(envelope(&back)), dedup.HashID(envelope(&before)); got != want {
		t.Errorf("the ID became %v, was %v", got, want)
	}
	other := &queue{cfg: QueueConfig{Name: "other"}}
	moved := delivery{Headers: sent.Headers, RoutingKey: "other"}
	other.unletter(&moved)
	if moved.RoutingKey != "other" {
		t.Error("a letter moved to another queue keeps that queue's routing key")
	}
}

// TestParkedAndBack sends a message through a wait queue and back: what the service and the ID see is the same.
func TestParkedAndBack(t *testing.T) {
	before := delivery{
		Headers: amqp.Table{"a": int32(1), "CC": []any{"other"}}, ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 3,
		CorrelationId: "c", ReplyTo: "r", Expiration: "60000", MessageId: "m", Timestamp: time.Unix(1700000000, 0), Type: "t", UserId: "u", AppId: "app",
		Exchange: "ex", RoutingKey: "rk", Body: []byte("body"),
	}
	sent := before
	death := []any{amqp.Table{"queue": "q", "reason": "rejected", "count": int64(1)}}
	sent.Headers = amqp.Table{"a": int32(1), "CC": []any{"other"}, "x-death": death, "x-first-death-queue": "q", "x-delivery-count": int64(9)}
	before.Headers["x-death"], before.Headers["x-first-death-queue"] = death, "q"
	seen := time.Unix(1800000000, 5).UTC()
	parked := parcel(&sent, seen)
	for name, bad := range map[string]bool{
		"an expiration": parked.Expiration != "", "a user-id": parked.UserId != "", "CC": parked.Headers["CC"] != nil,
		"x-death": parked.Headers["x-death"] != nil, "x-delivery-count": parked.Headers["x-delivery-count"] != nil, "not persistent": parked.DeliveryMode != 2,
	} {
		if bad {
			t.Errorf("in the wait queue it has %s", name)
		}
	}
	back := delivery{
		Headers: parked.Headers, ContentType: parked.ContentType, ContentEncoding: parked.ContentEncoding, DeliveryMode: parked.DeliveryMode,
		Priority: parked.Priority, CorrelationId: parked.CorrelationId, ReplyTo: parked.ReplyTo, MessageId: parked.MessageId, Timestamp: parked.Timestamp,
		Type: parked.Type, AppId: parked.AppId, Body: parked.Body, RoutingKey: "source",
	}
	back.Headers["x-death"], back.Headers["x-first-death-reason"], back.Headers["x-last-death-queue"] = []any{"the wait queue's"}, "expired", "w"
	back.Headers["x-delivery-count"] = int64(2) // the source queue's own
	if got, ok := unpark(&back); !ok || !got.Equal(seen) {
		t.Errorf("first seen %v %v, want %v", got, ok, seen)
	}
	before.Headers["x-delivery-count"] = int64(2)
	if diff := cmp.Diff(before, back, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Acknowledger" }, cmp.Ignore())); diff != "" {
		t.Errorf("after the way through a wait queue (-before +after):\n%s", diff)
	}
	plain := delivery{Headers: amqp.Table{"x-death": []any{}}, Exchange: "ex"}
	if _, ok := unpark(&plain); ok {
		t.Error("a message that was not parked counts as parked")
	}
	if plain.Exchange != "ex" || plain.Headers["x-death"] == nil {
		t.Errorf("a message that was not parked changed: %+v", plain)
	}
}
