package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// troubled answers as its messages need it for a test of order: some fail or are deferred once, one is rejected, the outcome of one is unknown.
func troubled(r testkit.Received) testkit.Action {
	n, _ := strconv.Atoi(strings.TrimPrefix(r.Key, "order-"))
	action := testkit.Action{Delay: brief}
	switch {
	case n == 50:
		action.Status = http.StatusUnprocessableEntity
	case n == 80 && r.Number == 1:
		action.Close = true
	case n == 110 && r.Number == 1:
		action.Status, action.Header = http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}
	case n%10 == 3 && r.Number <= 2:
		action.Status = http.StatusInternalServerError
	case n%25 == 7 && r.Number == 1:
		action.Status = http.StatusServiceUnavailable
	}
	return action
}

// Catches: a place in line taken in the handler's goroutine, a message that begins when the one before it only waits, one that waits in a wait queue,
// deliveries given back one by one at a shutdown or a pause, a session that begins anew while the POST of the one before it is still under way.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	for kind, declare := range map[string]func(*stand) error{
		"quorum":  func(s *stand) error { return s.client.DeclareQuorum(s.queue, nil) },
		"classic": func(s *stand) error { return s.client.DeclareClassic(s.queue, nil) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, troubled)
			s.must(s.client.Delete(s.queue))
			s.must(declare(s))
			orders := ids("order", 300)
			var stream []amqp.Publishing
			for i, id := range orders {
				stream = append(stream, message(id))
				if i%15 == 0 {
					stream = append(stream, message(id), message(orders[i/2])) // copies
				}
				if i == 60 {
					stream = append(stream, amqp.Publishing{Body: []byte("without an ID")})
				}
			}
			settings := orderly("queue")
			replica := s.start(settings)
			s.must(s.client.PublishTo(s.ctx, s.queue, stream...))
			s.begun("order-60", 1)
			replica.term()
			replica = s.start(settings)
			s.begun("order-130", 1)
			replica.kill()
			l := s.newLegs()
			s.start(settings, l.env)
			for _, id := range []string{"order-190", "order-203", "order-221"} { // 203 fails: it waits for its next attempt
				s.begun(id, 1)
				l.amqp.Reset()
			}
			s.answered(without(orders, "order-50")...)
			s.settled()
			s.inOrder(orders)
			if letters := s.letters(2); len(letters) != 2 || letters[0].MessageId != "order-50" || letters[1].MessageId != "" {
				t.Errorf("dead letters %v, want order-50 and the one without an ID", letters)
			}
		})
	}
}

// Catches: a consumer that is cancelled while its messages are unsettled, so that the broker sends the next ones to a consumer that stands by; a message
// that is busy elsewhere and does not block those behind it.
func TestStrictOrderOverReplicas(t *testing.T) {
	t.Parallel()
	held := map[string]chan struct{}{"order-40": make(chan struct{}), "order-120": make(chan struct{}), "order-160": make(chan struct{})}
	s := newStand(t, func(r testkit.Received) testkit.Action {
		action := troubled(r)
		if r.Number == 1 {
			action.Wait = held[r.Key]
		}
		return action
	})
	s.singleActive()
	settings := orderly("queue")
	settings["FORWARD_TIMEOUT"] = "3s"
	l := s.newLegs()
	first := s.start(settings)
	first.waitConsuming()
	second := s.start(settings)
	second.waitConsuming()
	orders := ids("order", 200)
	s.publish(orders...)

	s.begun("order-40", 1)
	third := s.start(settings, l.env)
	third.waitConsuming()
	s.must(first.Term())
	first.waitLog("draining")
	s.outage(300 * time.Millisecond) // in which nothing must begin
	close(held["order-40"])
	code, err := first.Wait(s.ctx)
	s.must(err)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.begun("order-90", 1)
	second.kill()
	s.begun("order-120", 1)
	fourth := s.start(settings)
	fourth.waitConsuming()
	l.amqp.Reset() // the third one's POST goes on while the fourth has its message
	fourth.waitMetric(`rabbitonce_duplicates_total{kind="busy",queue="{queue}"}`, 1)
	close(held["order-120"])
	s.begun("order-160", 1)
	close(held["order-160"])
	s.answered(without(orders, "order-50")...)
	s.settled()
	s.inOrder(orders)
	s.letter("order-50", "rejected")
	s.posts("order-120", 1)
}

// Catches: a queue that RABBITMQ_DECLARE makes without a single active consumer: the next replica would spoil the order.
func TestOrderDeclaresASingleActiveConsumer(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.must(s.client.Delete(s.queue))
	s.start(orderly("queue"), env{"RABBITMQ_DECLARE": "true"}).waitConsuming()
	s.must(s.client.DeclareQuorum(s.queue, amqp.Table{"x-single-active-consumer": true})) // refused when the arguments differ
}

// Catches: a replica that was cut off without notice and works on what it has, while the one that took over works on the same messages.
func TestStrictOrderWithAReplicaCutOff(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		action := testkit.Action{Delay: brief}
		if r.Key == "order-20" {
			action.Wait = answer
		}
		return action
	})
	s.singleActive()
	l := s.newLegs()
	settings := orderly("queue")
	settings["FORWARD_TIMEOUT"] = "20s"
	first := s.start(settings, l.env)
	first.waitConsuming()
	second := s.start(settings)
	second.waitConsuming()
	orders := ids("order", 60)
	s.publish(orders...)
	s.begun("order-20", 1)
	l.amqp.Stall(testkit.ToClient)
	l.amqp.Reset(testkit.ToServer)
	second.waitMetric(`rabbitonce_duplicates_total{kind="busy",queue="{queue}"}`, 1)
	close(answer)
	s.answered(orders...)
	s.settled()
	s.inOrder(orders)
	s.once(orders...)
	s.noLetters()
}

// Catches: a pause that gives back one by one, or keeps its consumer while the service is away, so that the replica that stands by gets messages out of
// order, or none.
func TestStrictOrderWhenAServiceGoesAway(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Delay: brief} })
	s.singleActive()
	other, err := testkit.StartService(func(testkit.Received) testkit.Action { return testkit.Action{Delay: brief} })
	s.must(err)
	t.Cleanup(func() { s.closed(other.Close()) })
	settings := orderly("queue")
	first := s.start(settings, env{"FORWARD_URL": other.URL + "/work"})
	first.waitConsuming()
	s.start(settings).waitConsuming()
	orders := ids("order", 100)
	s.publish(orders...)
	s.must(other.Journal.WaitBegun(s.ctx, "order-30", 1))
	s.must(other.Shutdown(s.ctx))
	first.waitMissing("service")
	s.answered(orders[50:]...)
	s.settled()
	s.inOrder(orders, other.Journal)
	if n := other.Journal.Count(); n < 30 {
		t.Errorf("%d POSTs on the service that went away: this shows nothing", n)
	}
	s.noLetters()
}

// Catches: a line that stands still while a success that is acked already waits for the store, although the queue goes on without the store.
func TestStrictOrderGoesOnWithoutTheStore(t *testing.T) {
	t.Parallel()
	redis, err := testkit.StartRedis(t.Context(), testkit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := redis.Close(); err != nil {
			t.Error(err)
		}
	})
	answer := make(chan struct{})
	s := newStandOn(t, shared.Broker, redis, func(r testkit.Received) testkit.Action {
		if r.Key == "a" {
			return testkit.Action{Wait: answer}
		}
		return testkit.Action{}
	})
	s.start(orderly("queue"), env{"DEDUP_ON_STORE_DOWN": "forward"})
	s.publish("a", "b")
	s.begun("a", 1)
	s.must(redis.Kill())
	close(answer)
	s.answered("a", "b")
	s.must(redis.Start(s.ctx))
	s.settled()
	s.inOrder([]string{"a", "b"})
}
