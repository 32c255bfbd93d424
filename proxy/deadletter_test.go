package proxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
)

func TestLetterKeepsTheMessageAndTellsItsStory(t *testing.T) {
	b := newBench(t, &journal{})
	stamp := time.Unix(1700000000, 0)
	m := &message{seen: time.Unix(1800000000, 0), delivery: &delivery{
		Headers: amqp.Table{
			"a": int32(1), "x-rabbitonce-status": int64(1), "x-rabbitonce-error": "old", "x-delivery-count": int64(3), "CC": []any{"orders"},
		},
		ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 1, Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "60000",
		MessageId: "m", Timestamp: stamp, Type: "t", UserId: "u", AppId: "app", Exchange: "ex", RoutingKey: "rk", Body: []byte("\x00body"),
	}}
	got, _ := b.queue.compose(m, obituary{reason: dedup.ReasonRejected, deadID: "0011223344556677", attempts: 2, status: 422, response: []byte("no\xff")})
	deadAt, _ := got.Headers["x-rabbitonce-dead-at"].(string)
	if at, err := time.Parse(time.RFC3339Nano, deadAt); err != nil || time.Since(at) > time.Minute {
		t.Errorf("dead-at is %q", deadAt)
	}
	want := letter{
		Headers: table{
			"a": int32(1), "x-rabbitonce-reason": "rejected", "x-rabbitonce-attempts": int64(2), "x-rabbitonce-status": int64(422),
			"x-rabbitonce-response": "no?", "x-rabbitonce-queue": "orders", "x-rabbitonce-exchange": "ex", "x-rabbitonce-routing-key": "rk",
			"x-rabbitonce-first-seen": "2027-01-15T08:00:00Z", "x-rabbitonce-dead-at": deadAt, "x-rabbitonce-dead-id": "0011223344556677",
			"x-rabbitonce-cc": []any{"orders"}, "x-rabbitonce-expiration": "60000", "x-rabbitonce-user-id": "u",
		},
		ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 3, CorrelationId: "c", ReplyTo: "r",
		MessageId: "m", Timestamp: stamp, Type: "t", AppId: "app", Body: []byte("\x00body"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("letter (-want +got):\n%s", diff)
	}
	if len(m.Headers) != 5 {
		t.Errorf("the delivery's own headers were changed: %v", m.Headers)
	}
}
