package e2e

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// story compares what a dead letter tells of its end, and returns the letter.
func (s *stand) story(l amqp.Delivery, want map[string]any) {
	s.t.Helper()
	got := map[string]any{}
	for name := range want {
		got[name] = l.Headers["x-rabbitonce-"+name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("the letter of %s tells another story (-want +got):\n%s", l.MessageId, diff)
	}
	for _, name := range []string{"first-seen", "dead-at", "dead-id"} {
		if text, _ := l.Headers["x-rabbitonce-"+name].(string); text == "" {
			s.t.Errorf("the letter of %s has no %s", l.MessageId, name)
		}
	}
}

// Catches: a message that always fails holding up others, its body changed on the way through the wait queue or into the dead letters, a letter that does not say why.
func TestPoisonOfSixteenMegabytes(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "poison" {
			return testkit.Action{Status: http.StatusInternalServerError, Body: []byte("cannot read this: attempt " + r.Attempt)}
		}
		return testkit.Action{}
	})
	poison := message("poison")
	poison.Body = make([]byte, 16<<20)
	for i, random := 0, rand.NewChaCha8([32]byte{}); i < len(poison.Body); i += 1 << 20 {
		_, _ = random.Read(poison.Body[i : i+1<<20])
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, poison))
	r := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s", "RETRY_MAX_ATTEMPTS": "3", "PREFETCH": "2", "FORWARD_CONCURRENCY": "2"})
	s.begun("poison", 1)
	orders := ids("order", 50)
	s.publish(orders...)
	s.answered(orders...)
	if n := len(s.service.Journal.ByKey("poison")); n > 2 {
		t.Errorf("the others were answered after attempt %d of the poison: they waited for it", n)
	}
	letters := s.letters(1)
	if len(letters) != 1 || letters[0].MessageId != "poison" || !bytes.Equal(letters[0].Body, poison.Body) {
		t.Fatalf("%d letters, the first of %q with %d bytes, want the poison whole", len(letters), letters[0].MessageId, len(letters[0].Body))
	}
	s.story(letters[0], map[string]any{
		"reason": "attempts-exhausted", "attempts": int64(3), "status": int64(500), "response": "cannot read this: attempt 3",
		"queue": s.queue, "exchange": "", "routing-key": s.queue,
	})
	r.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 2)
	s.settled()
	s.posts("poison", 3)
	for _, e := range s.service.Journal.ByKey("poison") {
		if e.BodyLength != len(poison.Body) || e.BodySHA256 != s.service.Journal.ByKey("poison")[0].BodySHA256 || e.ReadError != nil {
			t.Errorf("POST %d: %d bytes, %v", e.Number, e.BodyLength, e.ReadError)
		}
	}
}

// Catches: a message that ends the service each time it is read taken for one that was never sent (no end to it), other messages dead-lettered with it, a queue that
// does not go on.
func TestPoisonThatKillsTheService(t *testing.T) {
	t.Parallel()
	var s *stand
	var restarts sync.WaitGroup
	s = newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key != "poison" {
			return testkit.Action{}
		}
		restarts.Go(func() { // what restarts a crashed container
			s.service.Stop()
			if err := s.service.Start(); err != nil {
				t.Error(err)
			}
		})
		return testkit.Action{Hang: true}
	})
	t.Cleanup(restarts.Wait)
	s.start(env{
		"FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s", "RETRY_BACKOFF": "100ms", "RETRY_HOLD": "200ms", "FORWARD_UNKNOWN_MAX": "2", "RETRY_MAX_ATTEMPTS": "20",
		"PREFETCH": "4", "FORWARD_CONCURRENCY": "2",
	})
	orders := ids("order", 60)
	s.publish(orders[:30]...)
	s.publish("poison")
	s.publish(orders[30:]...)
	l := s.letter("poison", "unknown-outcome")
	s.story(l, map[string]any{"attempts": int64(3), "status": nil, "response": nil})
	if text, _ := l.Headers["x-rabbitonce-error"].(string); text == "" {
		t.Error("the letter does not say how the last request ended")
	}
	s.answered(orders...)
	s.settled()
	s.posts("poison", 3)
	s.onceUnlessUnknown(orders...) // one that was in a POST when the service died is of unknown outcome
	s.noLetters()
}

// Catches: a message that kills the process in its POST without an end, since no process lives to count it; or one that the broker drops before its end, for the returns that
// the kills are (its delivery limit is lower than the attempts are).
func TestPoisonThatKillsTheSidecar(t *testing.T) {
	t.Parallel()
	const attempts = 5
	s := newStand(t, func(r testkit.Received) testkit.Action { return testkit.Action{Hang: r.Key == "poison"} })
	s.byArgument(attempts - 2)
	settings := env{
		"FORWARD_TIMEOUT": "3s", "DEDUP_LEASE": "3s", "RETRY_BACKOFF": "100ms", "RETRY_MAX_ATTEMPTS": "5", "FORWARD_UNKNOWN_MAX": "100", "FORWARD_CONCURRENCY": "2",
	}
	s.publish("poison")
	orders := ids("order", attempts)
	for i := range attempts {
		s.publish(orders[i])
		r := s.start(settings)
		s.answered(orders[i])
		s.begun("poison", i+1)
		r.kill()
	}
	s.start(settings)
	l := s.letter("poison", "attempts-exhausted")
	s.story(l, map[string]any{"attempts": int64(attempts), "status": nil, "response": nil})
	s.settled()
	s.posts("poison", attempts)
	for _, id := range orders { // the kill may have come before the success was recorded
		for i, e := range s.service.Journal.ByKey(id) {
			if e.Unknown != (i > 0) {
				t.Errorf("POST %d of %s says unknown %t", i+1, id, e.Unknown)
			}
		}
	}
	s.nothingDropped()
}
