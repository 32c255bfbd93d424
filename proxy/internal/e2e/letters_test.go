package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// everyType is a header of each type that a message can have in AMQP 0-9-1 and RabbitMQ.
func everyType() amqp.Table {
	return amqp.Table{
		"bool": true, "int8": int8(-8), "uint8": uint8(8), "int16": int16(-16), "uint16": uint16(16), "int32": int32(-32), "uint32": uint32(32),
		"int64": int64(-64), "float32": float32(0.5), "float64": -0.25, "decimal": amqp.Decimal{Scale: 2, Value: 1999}, "text": "é \x00", "bytes": []byte{0, 0xff},
		"time": time.Unix(1_700_000_000, 0), "nothing": nil, "list": []any{nil, []byte{1}, amqp.Table{"n": uint16(1)}, []any(nil)}, "table": amqp.Table{"t": amqp.Table{}},
		"very long text": strings.Repeat("x", 70_000),
	}
}

// Catches: rounds through a wait queue that the broker takes for a loop and ends by dropping the message (the message brings a history that looks like one), attempts that are not
// counted there, an expiration that acts or is lost on the way, headers whose type changes or cannot be sent.
func TestLettersAfterRoundsThroughAWaitQueue(t *testing.T) {
	t.Parallel()
	const attempts = 6
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusInternalServerError} })
	// The queue's own way out leads nowhere: what takes it is lost in silence.
	s.move()
	s.must(s.client.DeclareQuorum(s.queue, amqp.Table{"x-dead-letter-exchange": s.queue + ".missing"}))
	exchange := s.queue + ".exchange"
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "order.#", exchange))
	m := message("a")
	m.Expiration, m.UserId, m.Priority, m.CorrelationId, m.ReplyTo, m.Type, m.AppId = "600000", "guest", 3, "c", "r", "order.created", "shop"
	m.Timestamp = time.Unix(1_700_000_000, 0)
	m.Headers = everyType()
	step := s.queue + ".wait.1s"
	m.Headers["CC"] = []any{"nowhere"}
	m.Headers["x-death"] = []any{
		amqp.Table{"queue": s.queue, "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{s.queue}, "time": time.Unix(1, 0)},
		amqp.Table{"queue": step, "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{step}, "time": time.Unix(1, 0)},
	}
	s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "order.created", Publishing: m}))
	r := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s", "RETRY_MAX_ATTEMPTS": fmt.Sprint(attempts)})
	l := s.letter("a", "attempts-exhausted")
	r.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, attempts-1)
	s.settled()
	s.inTurn("a", attempts)
	s.story(l, map[string]any{
		"attempts": int64(attempts), "status": int64(500), "queue": s.queue, "exchange": exchange, "routing-key": "order.created",
		"expiration": "600000", "user-id": "guest", "cc": []any{"nowhere"},
	})
	for name := range l.Headers {
		if strings.HasPrefix(name, "x-rabbitonce-") {
			delete(l.Headers, name)
		}
	}
	headers := everyType()
	headers["x-death"] = m.Headers["x-death"] // what it brought, and no more
	if diff := cmp.Diff(headers, l.Headers); diff != "" {
		t.Errorf("headers of the letter (-message +letter):\n%s", diff)
	}
	got := amqp.Publishing{
		ContentType: l.ContentType, DeliveryMode: l.DeliveryMode, Priority: l.Priority, CorrelationId: l.CorrelationId, ReplyTo: l.ReplyTo,
		MessageId: l.MessageId, Timestamp: l.Timestamp, Type: l.Type, AppId: l.AppId, Body: l.Body, Expiration: l.Expiration, UserId: l.UserId,
	}
	m.Headers, m.Expiration, m.UserId = nil, "", ""
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("the letter (-message +letter):\n%s", diff)
	}
}

// inTurn wants n attempts of an ID, numbered from 1, each with the exchange and routing key that the message was published with.
func (s *stand) inTurn(id string, n int) {
	s.t.Helper()
	for i, e := range s.posts(id, n) {
		if e.Attempt != fmt.Sprint(i+1) || e.Header.Get("RabbitMQ-Routing-Key") != "order.created" || e.Header.Get("RabbitMQ-Header-int32") != "-32" {
			s.t.Errorf("POST %d says attempt %s, routing key %q, header %q", i+1, e.Attempt, e.Header.Get("RabbitMQ-Routing-Key"), e.Header.Get("RabbitMQ-Header-int32"))
		}
	}
}

// Catches: a refused letter (nack) taken for one that is in its queue, the message acked; others held up by it; a status that does not say what is wrong.
func TestLettersIntoAFullQueue(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if strings.HasPrefix(r.Key, "bad") {
			return testkit.Action{Status: http.StatusBadRequest}
		}
		return testkit.Action{}
	})
	s.must(s.client.Delete(s.dead))
	s.must(s.client.DeclareClassic(s.dead, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}))
	r := s.start()
	bad := ids("bad", 3)
	s.publish(bad...)
	r.waitMissing("length limit")
	s.publish("good")
	s.answered("good")
	s.eventually("the messages without a letter are still there", func() (bool, error) {
		ready, unacknowledged, err := s.counts()
		return ready == 0 && unacknowledged == len(bad)-1, fmt.Errorf("%d ready, %d unacknowledged, %w", ready, unacknowledged, err)
	})
	got := map[string]bool{}
	for range bad { // each makes room for the next
		letters, err := s.client.Take(s.ctx, s.dead, 1)
		s.must(err)
		got[letters[0].MessageId] = true
	}
	if len(got) != len(bad) {
		t.Errorf("letters of %v, want one of each of %v", got, bad)
	}
	r.waitConsuming()
	s.settled()
	for _, id := range bad {
		s.posts(id, 1)
	}
	s.noLetters()
}

// largestMessage sets how many bytes a message may have on channels that are opened from now on. RabbitMQ 4 keeps a copy of the setting.
func (s *stand) largestMessage(bytes int) {
	s.t.Helper()
	s.ctl("eval", fmt.Sprintf("application:set_env(rabbit, max_message_size, %[1]d), persistent_term:put(max_message_size, %[1]d).", bytes))
}

// Catches: a message that has become too large for the broker acked without its letter, tried without a pause, or holding up others; a status that does not say what is wrong.
// The limit is above what any other test publishes.
func TestLettersAboveTheBrokersSizeLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch r.Key {
		case "late":
			return testkit.Action{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}
		case "huge", "small":
			return testkit.Action{Status: http.StatusBadRequest}
		}
		return testkit.Action{}
	})
	huge := message("huge")
	huge.Body = bytes.Repeat([]byte("huge "), 4<<20)
	s.largestMessage(134217728) // as 3.10 has it by default
	s.dial()                    // a channel takes the limit when it is opened
	s.must(s.client.PublishTo(s.ctx, s.queue, huge))
	s.largestMessage(17825792)
	defer s.largestMessage(134217728)
	r := s.start()
	r.waitMissing("message size")
	s.publish("small", "good")
	s.answered("good")
	small := s.letter("small", "rejected")
	s.story(small, map[string]any{"status": int64(400)})
	if ready, unacknowledged, err := s.counts(); err != nil || ready+unacknowledged != 1 {
		t.Errorf("%d messages ready, %d unacknowledged, %v, want the one that has no letter", ready, unacknowledged, err)
	}
	s.largestMessage(134217728)
	letters := s.letters(1)
	if len(letters) != 1 || letters[0].MessageId != "huge" || !bytes.Equal(letters[0].Body, huge.Body) {
		t.Errorf("%d letters, the first of %s, want the huge one whole", len(letters), letters[0].MessageId)
	}
	s.settled()
	s.posts("huge", 1)
	s.posts("small", 1)
}

// Catches: a message acked although the confirm of its letter, or of its copy in a wait queue, never came; one POSTed twice because the copy is there all the same.
func TestLettersWhoseConfirmIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int // of the first answer
		posts  int
	}{
		{"of a letter", http.StatusBadRequest, 1},
		{"of a copy in a wait queue", http.StatusInternalServerError, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, func(r testkit.Received) testkit.Action {
				if r.Number == 1 {
					return testkit.Action{Status: c.status}
				}
				return testkit.Action{}
			})
			l := s.newLegs()
			confirm := l.amqp.Barrier(testkit.ToClient, testkit.BasicAck())
			r := s.start(l.env, env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s"})
			s.publish("a")
			s.must(confirm.Wait(s.ctx))
			if c.posts == 1 { // the copy in the wait queue would come back meanwhile, and be done
				s.eventually("the message is unacknowledged without its confirm", func() (bool, error) {
					ready, unacknowledged, err := s.counts() // as old as the broker's last look
					return ready == 0 && unacknowledged == 1, err
				})
			}
			confirm.Drop()
			if c.posts == 1 {
				letters := s.letters(2) // the first was published, whatever became of its confirm
				s.lettersOf(letters, "a", "rejected")
				if one, two := letters[0].Headers["x-rabbitonce-dead-id"], letters[1].Headers["x-rabbitonce-dead-id"]; one != two || len(letters) != 2 {
					t.Errorf("%d letters with the dead-ids %v and %v, want two of one death", len(letters), one, two)
				}
			} else {
				s.answered("a")
				r.waitMetric(`rabbitonce_deliveries_total{outcome="duplicate",queue="{queue}"}`, 1) // the message and its copy: one is done, the other acked
				s.noLetters()
			}
			s.settled()
			s.posts("a", c.posts)
		})
	}
}

// Catches: a message lost with its source queue, although it was in its wait queue. The broker's own worker, which moves it, tries again after a time of its own (three minutes by
// default, here five seconds).
func TestLettersOfAWaitQueueWithoutItsSourceQueue(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	s := newStand(t, func(testkit.Received) testkit.Action {
		if ready.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusInternalServerError}
	})
	// The worker reads it when the wait queue is declared. What others declare meanwhile does no harm.
	s.ctl("eval", "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 5000).")
	r := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "5s", "RETRY_MAX_ATTEMPTS": "100"})
	s.publish("a")
	r.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 1)
	s.must(s.client.Delete(s.queue))
	ready.Store(true)
	s.ctl("eval", "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 180000).")
	r.waitMissing("queue")
	s.outage(6 * time.Second) // it is due, and has nowhere to go
	s.declare(s.queue)
	back := time.Now()
	s.answered("a")
	t.Logf("it was back %v after its queue", time.Since(back))
	s.settled()
	s.numbered("a")
	s.noLetters()
}

// Catches: one queue for pauses of all lengths, where a short one stands behind a long one, since a queue looks at the expiration of its head alone.
func TestLettersWaitByTheLengthOfTheirPause(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Key == "long":
			return testkit.Action{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"600"}}}
		case r.Number == 1:
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	r := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s,10m"})
	s.publish("long")
	r.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 1)
	s.publish("short")
	s.answered("short")
	s.settled()
	attempts := s.posts("short", 2)
	if pause := attempts[1].Began.Sub(attempts[0].Ended); pause < 700*time.Millisecond || pause > time.Minute {
		t.Errorf("the second attempt came after %v, want about a second", pause)
	}
	s.posts("long", 1)
	if n, _, err := s.client.Depth(s.queue + ".wait.10m"); err != nil || n != 1 {
		t.Errorf("%d messages in the wait queue of ten minutes, %v, want 1", n, err)
	}
}
