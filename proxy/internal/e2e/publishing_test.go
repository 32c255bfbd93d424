package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// suspend stops a quorum queue: it takes messages and confirms none, as one without a majority does.
func (s *stand) suspend(queue string) {
	s.t.Helper()
	_, err := s.broker.Ctl(s.ctx, "eval", "sys:suspend('%2F_"+queue+"').")
	s.must(err)
}

func (s *stand) resume(queue string) {
	s.t.Helper()
	_, err := s.broker.Ctl(s.ctx, "eval", "sys:resume('%2F_"+queue+"').")
	s.must(err)
}

// Catches: one dead-letter queue that does not confirm holding up the letters of another queue, a connection given up for it, letters lost or acked without a confirm, a
// drain that waits for the confirm.
func stuckDeadLetterQueue(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	other := s.queue + ".other"
	s.declare(other)
	s.must(s.client.Delete(s.dead)) // only a quorum queue can be suspended so
	s.must(s.client.DeclareQuorum(s.dead, nil))
	s.declare(other + ".dead")
	replica := s.start(env{"QUEUES": s.queue + "," + other})
	s.publish("first") // the queues are seen
	s.letter("first", "rejected")
	s.suspend(s.dead)
	stuck := ids("stuck", 10)
	s.publish(stuck...)
	s.underWay(11)
	good := ids("good", 100)
	for _, id := range good {
		s.must(s.client.PublishTo(s.ctx, other, message(id)))
	}
	began := time.Now()
	letters, err := s.client.Take(s.ctx, other+".dead", len(good))
	s.must(err)
	if took := time.Since(began); took > 14*time.Second { // a confirm is waited for for 15
		t.Errorf("%d letters of the other queue took %v", len(letters), took)
	}
	replica.waitMissing("no confirm from the broker")
	if _, unacknowledged, err := s.counts(); err != nil || unacknowledged != len(stuck) {
		t.Errorf("%d unacknowledged, %v; want %d: their letters are not confirmed", unacknowledged, err, len(stuck))
	}
	began = time.Now()
	replica.term()
	if took := time.Since(began); took > 20*time.Second { // SHUTDOWN_GRACE is 25
		t.Errorf("the drain took %v", took)
	}
	s.resume(s.dead)
	s.start(env{"QUEUES": s.queue})
	s.emptied()
	seen := map[string]bool{}
	for _, l := range s.letters(len(stuck)) {
		seen[l.MessageId] = true
	}
	for _, id := range stuck {
		if s.posts(id, 1); !seen[id] {
			t.Errorf("no letter of %s", id)
		}
	}
	s.settled()
}

// Catches: a prefetch full of messages that wait for their next attempt, behind which nothing moves.
func TestMessagesThatWaitMakeRoom(t *testing.T) {
	t.Parallel()
	bad, good := ids("bad", 20), ids("good", 20)
	fail := func(r testkit.Received) testkit.Action {
		if r.Number == 1 && slices.Contains(bad, r.Key) {
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	}
	t.Run("others flow meanwhile", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, fail)
		s.publish(append(slices.Clone(bad), good...)...)
		s.start(env{"PREFETCH": "8", "RETRY_BACKOFF": "10m", "RETRY_HOLD": "10m"})
		s.answered(good...)
		for _, id := range bad {
			s.posts(id, 1)
		}
	})
	t.Run("and come back", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, fail)
		s.publish(append(slices.Clone(bad), good...)...)
		replica := s.start(env{"PREFETCH": "8", "RETRY_BACKOFF": "4s", "RETRY_HOLD": "4s"})
		s.answered(append(slices.Clone(bad), good...)...)
		replica.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 1)
		s.settled()
		for _, id := range bad {
			s.posts(id, 2)
		}
		s.noLetters()
	})
}

// Catches: a wait queue of other arguments used all the same, a message lost or stuck because of it, words that do not say what to do.
func TestAWaitQueueWithOtherArguments(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number == 1 {
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	wait := s.queue + ".wait.2s"
	s.must(s.client.DeclareQuorum(wait, amqp.Table{"x-message-ttl": int64(2000)})) // dead-letters nowhere
	settings := env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "2s"}
	replica := s.start(settings)
	s.publish("a")
	replica.waitLog("waiting", "part", "wait queues")
	s.must(replica.WaitFor(s.ctx, "/status", func(_ int, body []byte) bool {
		return strings.Contains(string(body), "delete it when it is empty")
	}))
	s.answered("a")
	s.settled()
	s.must(s.client.Delete(wait))
	replica = s.start(settings)
	s.publish("b")
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 1)
	s.answered("b")
	s.settled()
	s.posts("a", 2)
	s.posts("b", 2)
}

// messageTooLarge lowers the broker's limit for everybody. Catches: a message over it lost, or sent again in a hot loop, or holding up the letters of others.
func messageTooLarge(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	limit := func(bytes string) {
		_, err := broker.Ctl(s.ctx, "eval", "application:set_env(rabbit, max_message_size, "+bytes+"), persistent_term:put(max_message_size, "+bytes+").")
		s.must(err)
	}
	large := message("large")
	large.Body = make([]byte, 20_000)
	s.must(s.client.PublishTo(s.ctx, s.queue, large))
	limit("10000")
	replica := s.start()
	replica.waitMissing("raise max_message_size")
	replica.waitMissing("20000 bytes")
	s.publish("small")
	s.letter("small", "rejected")
	limit("134217728")
	letters := s.letters(1)
	if len(letters) != 1 || len(letters[0].Body) != len(large.Body) {
		t.Errorf("%d letters", len(letters))
	}
	s.settled()
	s.posts("large", 1)
}

// Catches: a message acked although its letter was refused.
func TestARefusedLetterKeepsItsMessage(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} })
	s.must(s.client.Delete(s.dead))
	s.must(s.client.DeclareQuorum(s.dead, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}))
	replica := s.start()
	all := ids("m", 8)
	s.publish(all...)
	replica.waitMissing("at its length limit")
	seen := map[string]bool{}
	s.eventually("every letter arrives, one after the other", func() (bool, error) {
		letters, err := s.client.Drain(s.dead)
		for _, l := range letters {
			seen[l.MessageId] = true
		}
		return len(seen) == len(all), err
	})
	s.eventually("the rest is drained", func() (bool, error) { // letters that were let in while the queue was full
		_, err := s.client.Drain(s.dead)
		_, unacknowledged, countErr := s.counts()
		return err == nil && countErr == nil && unacknowledged == 0, err
	})
	s.settled()
	for _, id := range all {
		s.posts(id, 1)
	}
}
