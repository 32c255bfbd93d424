package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a delivery settled twice, by its answer and by its timeout in the same moment: the broker then closes the channel and hands out all of
// its siblings again.
func TestAnswerInTheMomentOfTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number == 1 {
			return testkit.Action{Delay: timeout - 12*time.Millisecond + rand.N(14*time.Millisecond)}
		}
		return testkit.Action{}
	})
	r := s.start(env{"FORWARD_TIMEOUT": timeout.String(), "FORWARD_CONCURRENCY": "10", "PREFETCH": "10", "RETRY_BACKOFF": "100ms"})
	r.waitConsuming()
	orders := ids("order", 60)
	s.publish(orders...)
	s.answered(orders...)
	s.settled()
	intime := 0
	for _, id := range orders {
		entries := s.service.Journal.ByKey(id)
		if len(entries) == 1 {
			intime++
		}
		if len(entries) > 2 {
			t.Errorf("%d POSTs of %s", len(entries), id)
		}
		for i, e := range entries {
			if e.Unknown != (i > 0) {
				t.Errorf("POST %d of %s, unknown %t", i+1, id, e.Unknown)
			}
			if e.Header.Get("RabbitMQ-Redelivered") == "true" {
				t.Errorf("%s was delivered again: its channel was closed", id)
			}
		}
	}
	if intime == 0 || intime == len(orders) {
		t.Errorf("%d of %d answers came in time: this shows nothing", intime, len(orders))
	}
	r.undisturbed(s.queue)
	s.noLetters()
}

// Catches: a `multiple` ack for the message that ends first, which would settle those before it although they are still at work.
func TestLastMessageEndsFirst(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		return testkit.Action{Hang: r.Key != "third" && r.Number == 1}
	})
	l := s.newLegs()
	settings := env{"PREFETCH": "3", "FORWARD_CONCURRENCY": "3"}
	ack := l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
	r := s.start(crashEnv(), settings, l.env)
	s.publish("first", "second")
	s.underWay(2)
	s.publish("third")
	s.must(ack.Wait(s.ctx))
	ack.Release()
	s.outage(200 * time.Millisecond) // the broker takes it in
	r.kill()
	s.eventually("the others are back in the queue", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready == 2, err
	})
	s.start(crashEnv(), settings)
	s.answered("first", "second")
	s.settled()
	s.posts("third", 1)
	for _, id := range []string{"first", "second"} {
		s.repeated(s.posts(id, 2)[0], s.posts(id, 2)[1])
	}
	s.noLetters()
}
