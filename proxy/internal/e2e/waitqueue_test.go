package e2e

import (
	"net/http"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a long wait held in the process (it would block the only place of the prefetch), a message dropped by its own expiration on the way through the wait queue, its
// exchange, routing key or attempts lost there, x-death left on.
func TestALongWaitLeavesTheProcess(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "a" && r.Number == 1 {
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	exchange := s.queue + ".exchange"
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "order.#", exchange))
	replica := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "3s", "PREFETCH": "1", "FORWARD_CONCURRENCY": "1"})
	m := message("a")
	m.Expiration, m.Headers = "2000", amqp.Table{"tenant": "t1"}
	s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "order.created", Publishing: m}))
	s.answeredBy("a", 1)
	s.publish("b")
	s.answered("b")
	if n := len(s.service.Journal.ByKey("a")); n != 1 {
		t.Fatalf("%d POSTs of a before b was answered, want 1", n)
	}
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 1)
	s.answered("a")
	s.settled()
	second := s.posts("a", 2)[1]
	for name, want := range map[string]string{
		"Delivery-Attempt": "2", "Delivery-Outcome-Unknown": "", "RabbitMQ-Exchange": exchange, "RabbitMQ-Routing-Key": "order.created",
		"RabbitMQ-Header-tenant": "t1", "RabbitMQ-Header-x-death": "", "RabbitMQ-Header-x-rabbitonce-parked-exchange": "",
	} {
		if got := second.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	s.noLetters()
}
