package e2e

import (
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"rabbitonce/proxy/internal/testkit"
)

// withExchange declares the source queue anew, with a dead-letter exchange that leads to a queue of its own, which is returned.
func (s *stand) withExchange() (graveyard string) {
	s.t.Helper()
	graveyard = s.queue + ".graveyard"
	exchange := s.queue + ".dlx"
	s.must(s.client.DeclareExchange(exchange, "fanout"))
	s.declare(graveyard)
	s.must(s.client.Bind(graveyard, "", exchange))
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareSource(s.queue, amqp.Table{"x-dead-letter-exchange": exchange}))
	return graveyard
}

// rejected waits for one message in a queue that the broker dead-letters to.
func (s *stand) rejected(graveyard, id string) amqp.Delivery {
	s.t.Helper()
	letters, err := s.client.Take(s.ctx, graveyard, 1)
	s.must(err)
	l := letters[0]
	if l.MessageId != id || string(l.Body) != string(message(id).Body) || l.Headers["x-first-death-reason"] != "rejected" {
		s.t.Errorf("in the graveyard %q, body %q, headers %v; want %q whole, rejected", l.MessageId, l.Body, l.Headers, id)
	}
	return l
}

// forgotten waits until an ID has no record.
func (s *stand) forgotten(id string) {
	s.t.Helper()
	options, err := redis.ParseURL(s.redis.URL)
	s.must(err)
	client := redis.NewClient(options)
	defer func() { s.closed(client.Close()) }()
	s.eventually("no record of "+id, func() (bool, error) {
		n, err := client.Exists(s.ctx, s.queue+"://"+s.queue+":"+id).Result() // DEDUP_PREFIX is the queue's name
		return err == nil && n == 0, err
	})
}

// waitWarning waits for a warning that holds the words.
func (r *replica) waitWarning(words string) {
	r.stand.t.Helper()
	_, err := r.Logs.Wait(r.stand.ctx, func(l testkit.LogLine) bool { return strings.Contains(l.Message(), words) })
	r.stand.must(err)
}

var rejecting = env{"DEADLETTER_MODE": "reject"}

// Catches: a letter published beside the reject, a record that stays and keeps what is put back from work, or one that is deleted although an outcome was unknown, a reason that is
// not rejected, a warning that is missing.
func TestDeadLettersByReject(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Key == "unknown":
			return testkit.Action{Status: http.StatusGatewayTimeout}
		case r.Number == 1:
			return testkit.Action{Status: http.StatusBadRequest}
		}
		return testkit.Action{}
	})
	graveyard := s.withExchange()
	s.must(s.client.Delete(s.dead))
	replica := s.start(rejecting, env{"FORWARD_ON_UNKNOWN": "deadletter"})
	replica.waitWarning("the broker drops the message")
	s.publish("a")
	s.rejected(graveyard, "a")
	replica.waitMetric(`rabbitonce_dead_letters_total{queue="{queue}",reason="rejected"}`, 1)
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="dead_letter",queue="{queue}"}`, 1)
	replica.waitMetric(`rabbitonce_store_operations_total{operation="undead",result="ok"}`, 1)
	s.forgotten("a")
	s.publish("a") // put back: as new
	s.answeredBy("a", 2)
	s.publish("unknown")
	s.rejected(graveyard, "unknown")
	s.publish("unknown") // only forget opens it
	s.rejected(graveyard, "unknown")
	missing := message("")
	s.must(s.client.PublishTo(s.ctx, s.queue, missing))
	s.rejected(graveyard, "")
	conflicting := message("a")
	conflicting.Body = message("").Body
	s.must(s.client.PublishTo(s.ctx, s.queue, conflicting))
	letters, err := s.client.Take(s.ctx, graveyard, 1)
	s.must(err)
	if letters[0].MessageId != "a" || string(letters[0].Body) != string(conflicting.Body) {
		t.Errorf("conflict: %q, body %q", letters[0].MessageId, letters[0].Body)
	}
	s.settled()
	if s.posts("a", 2)[1].Attempt != "1" {
		t.Error("what was put back does not begin anew")
	}
	s.posts("unknown", 1)
	if there, err := s.client.Exists(s.dead); err != nil || there {
		t.Errorf("a dead-letter queue was declared (%v)", err)
	}
}

// Catches: anything that keeps the message when the user chose reject without an exchange, such as a requeue in a hot loop.
func TestRejectWithoutAnExchangeDrops(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	replica := s.start(rejecting)
	replica.waitWarning("the broker drops the message")
	s.publish("a")
	replica.waitLog("dead letter", "id", "a")
	s.settled()
	s.posts("a", 1)
	s.noLetters()
}

// Catches: a reject before the record, or a record deleted before the broker has the reject: the redelivery would be POSTed again.
func TestKillBetweenRecordAndReject(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	graveyard := s.withExchange()
	l := s.newLegs()
	barrier := l.amqp.Barrier(testkit.ToServer, testkit.BasicNack())
	first := s.start(l.env, rejecting)
	s.publish("a")
	first.killAt(barrier)
	if ready, _, err := s.client.Depth(graveyard); err != nil || ready > 0 {
		t.Fatalf("%d in the graveyard, %v: the reject was not held", ready, err)
	}
	second := s.start(rejecting)
	s.rejected(graveyard, "a")
	second.waitMetric(`rabbitonce_duplicates_total{kind="dead",queue="{queue}"}`, 1)
	s.settled()
	s.posts("a", 1)
}

// Catches: a dead letter counted, or its record deleted, although the session ended before the reject left.
func TestSessionLostBeforeTheReject(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	graveyard := s.withExchange()
	l := s.newLegs()
	barrier := l.amqp.Barrier(testkit.ToServer, testkit.BasicNack())
	replica := s.start(l.env, rejecting)
	s.publish("a")
	s.must(barrier.Wait(s.ctx))
	barrier.Drop()
	s.rejected(graveyard, "a")
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="dead_letter",queue="{queue}"}`, 1)
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="returned",queue="{queue}"}`, 1)
	replica.waitMetric(`rabbitonce_dead_letters_total{queue="{queue}",reason="rejected"}`, 1)
	s.settled()
	s.posts("a", 1)
}
