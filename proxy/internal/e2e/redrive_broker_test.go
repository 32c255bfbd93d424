package e2e

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: letters that the broker drops because a redrive looked at them too often: here there is no dead-letter exchange.
func TestRedriveStaysBelowTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.must(s.client.Delete(s.dead))
	s.must(s.client.DeclareQuorum(s.dead, amqp.Table{"x-delivery-limit": int32(3)}))
	all := ids("a", 3)
	s.publishLetters(all...)
	for range 8 {
		s.putBack(0, "--reason", "conflict")
	}
	s.lettersAre(all...)
}

// Catches: a broker's dead letter taken for another queue's, or put back as something else than it was.
func TestRedriveOfTheBrokersDeadLetters(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	exchange, other := s.queue+".ex", s.queue+".other"
	arguments := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.dead}
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareQuorum(s.queue, arguments))
	s.must(s.client.DeclareQuorum(other, arguments))
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "new.#", exchange))
	m := message("a")
	m.UserId, m.Headers = "guest", amqp.Table{"n": int32(1)}
	s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "new.eu", Publishing: m}))
	s.must(s.client.PublishTo(s.ctx, other, message("b")))
	s.must(s.reject(s.queue))
	s.must(s.reject(other))
	s.eventually("both are dead", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 2, err
	})
	got := s.putBack(1)
	if got.ByReason["broker-rejected"] != 1 || got.ByBroker != 1 || got.OtherQueues != 1 {
		t.Errorf("summary %+v", got)
	}
	s.start()
	s.answered("a")
	s.settled()
	post := s.posts("a", 1)[0]
	if post.Header.Get("RabbitMQ-Exchange") != exchange || post.Header.Get("RabbitMQ-Routing-Key") != "new.eu" || post.Header.Get("RabbitMQ-Header-x-death") != "" {
		t.Errorf("headers of the POST: %v", post.Header)
	}
	s.lettersAre("b")
}

// Catches: letters of DEADLETTER_MODE=reject that cannot be put back; a record that is closed, opened without a decision.
func TestRedriveAfterReject(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if healthy.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusBadRequest, Close: r.Key == "unknown"}
	})
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareQuorum(s.queue, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.dead}))
	settings := env{"DEADLETTER_MODE": "reject", "FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s"}
	s.start(settings)
	s.publish("rejected", "unknown")
	s.eventually("both are dead", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 2, err
	})
	s.emptied()
	s.forgotten("rejected") // before that it would be dead still
	healthy.Store(true)
	if got := s.redriveWith(settings, s.queue); got.code != 2 || !strings.Contains(got.notes, "--from") {
		t.Errorf("without --from: exit code %d", got.code)
	}
	if got := s.redriveWith(settings, s.queue, "--from", s.dead); got.code != 0 || !strings.Contains(got.out, "without a dead-id: 2") {
		t.Errorf("with --from: exit code %d", got.code)
	}
	s.answered("rejected")
	s.settled()
	s.posts("unknown", 1)
	s.lettersAre("unknown")
}

// reject takes one message and rejects it.
func (s *stand) reject(queue string) error {
	connection, err := amqp.Dial(s.broker.URL)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	m, ok, err := channel.Get(queue, false)
	if err == nil && ok {
		err = m.Reject(false)
	}
	return errors.Join(err, channel.Close()) // the close is answered after the reject has arrived
}
