package fakebroker

import (
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// waiting is how the program declares a wait queue.
func waiting(target string, ttl int64) amqp.Table {
	return amqp.Table{
		"x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": target,
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}
}

// death is what the first entry of x-death says.
func death(d amqp.Delivery) amqp.Table {
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return nil
	}
	first, _ := deaths[0].(amqp.Table)
	delete(first, "time")
	return first
}

var deadLetterRules = []rule{
	{"a message leaves a wait queue after its time, for the queue it names", []string{quorum}, func(s *stand) {
		s.declare(s.queue, nil)
		s.declare(s.queue+"-wait", waiting(s.queue, 200))
		began := time.Now()
		s.publish(s.queue+"-wait", "a", "b")
		_, deliveries := s.consume(s.queue, 10)
		d := s.next(deliveries, "a")
		if time.Since(began) < 200*time.Millisecond {
			s.Error("too early")
		}
		s.next(deliveries, "b")
		want := amqp.Table{"queue": s.queue + "-wait", "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{s.queue + "-wait"}}
		if diff := cmp.Diff(want, death(d)); diff != "" || d.RoutingKey != s.queue || d.Exchange != "" || d.Redelivered {
			s.Errorf("exchange %q, key %q, redelivered %t (-want +got):\n%s", d.Exchange, d.RoutingKey, d.Redelivered, diff)
		}
		if d.Headers["x-first-death-queue"] != s.queue+"-wait" || d.Headers["x-first-death-reason"] != "expired" {
			s.Errorf("headers are %v", d.Headers)
		}
	}},
	{"a rejected message goes to the dead-letter queue", nil, func(s *stand) {
		s.declare(s.queue+"-dead", nil)
		s.declare(s.queue, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue + "-dead"})
		s.publish(s.queue, "a")
		_, deliveries := s.consume(s.queue, 10)
		d := s.next(deliveries, "a")
		s.check(d.Reject(false))
		dead := s.take(s.channel(), s.queue+"-dead", "a")
		if got := death(dead); got["reason"] != "rejected" || got["queue"] != s.queue {
			s.Errorf("x-death is %v", got)
		}
		s.empty(s.queue)
	}},
	{"a rejected message without one is gone", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		ch, deliveries := s.consume(s.queue, 1)
		s.check(s.next(deliveries, "a").Nack(false, false))
		s.next(deliveries, "b")
		s.check(ch.Close())
		s.take(s.channel(), s.queue, "b")
		s.empty(s.queue)
	}},
	{"a message's own expiration counts when it is shorter", nil, func(s *stand) {
		s.declare(s.queue+"-dead", nil)
		s.declare(s.queue, amqp.Table{"x-message-ttl": int64(600_000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue + "-dead"})
		s.publishOne(s.queue, amqp.Publishing{DeliveryMode: 2, Expiration: "100", Body: []byte("a")})
		d := s.take(s.channel(), s.queue+"-dead", "a")
		if got := death(d); got["reason"] != "expired" || got["original-expiration"] != "100" || d.Expiration != "" {
			s.Errorf("x-death is %v, the expiration %q", got, d.Expiration)
		}
	}},
	{"a message that came back more often than the limit is a dead letter", []string{quorum}, func(s *stand) {
		s.declare(s.queue+"-dead", nil)
		s.declare(s.queue, amqp.Table{"x-delivery-limit": int64(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue + "-dead"})
		s.publish(s.queue, "a")
		_, deliveries := s.consume(s.queue, 10)
		for range 3 {
			s.check(s.next(deliveries, "a").Nack(false, true))
		}
		if got := death(s.take(s.channel(), s.queue+"-dead", "a")); got["reason"] != "delivery_limit" {
			s.Errorf("x-death is %v", got)
		}
		s.empty(s.queue)
	}},
	{"a message that goes round by itself is dropped", []string{classic}, func(s *stand) {
		s.declare(s.queue, amqp.Table{"x-message-ttl": int64(50), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue + "-2"})
		s.declare(s.queue+"-2", amqp.Table{"x-message-ttl": int64(50), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue})
		s.declare(s.queue+"-3", amqp.Table{"x-message-ttl": int64(1000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.queue + "-4"})
		s.declare(s.queue+"-4", nil)
		s.publish(s.queue+"-3", "later")
		s.publish(s.queue, "a")
		s.take(s.channel(), s.queue+"-4", "later")
		s.empty(s.queue)
		s.empty(s.queue + "-2")
	}},
}

var outageRules = []rule{
	{"an alarm blocks who publishes, and nobody else", []string{quorum}, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a")
		consuming := s.dial()
		defer func() { _ = consuming.Close() }()
		publisher := s.conn
		blocked := publisher.NotifyBlocked(make(chan amqp.Blocking, 2))
		ch := s.channel()
		s.check(ch.Confirm(false))
		s.conn = consuming
		_, deliveries := s.consume(s.queue, 1)
		d := s.next(deliveries, "a")

		s.alarm(s.T, true)
		cleared := false
		defer func() {
			if !cleared {
				s.alarm(s.T, false)
			}
		}()
		var sent []*amqp.DeferredConfirmation
		publish := func() {
			s.Helper()
			confirm, err := ch.PublishWithDeferredConfirm("", s.queue, true, false, amqp.Publishing{Body: []byte("b")})
			s.check(err)
			sent = append(sent, confirm)
		}
		notice := func(active bool) {
			s.Helper()
			deadline := time.After(patience)
			for {
				select {
				case b := <-blocked:
					if b.Active != active {
						s.Fatalf("got %+v", b)
					}
					return
				case <-deadline:
					s.Fatal("no notice")
				case <-time.After(100 * time.Millisecond): // the alarm takes a moment to come round
					if active {
						publish()
					}
				}
			}
		}
		notice(true)
		s.check(d.Ack(false)) // others go on
		s.declare(s.queue+"-2", nil)
		publish()
		select {
		case <-sent[len(sent)-1].Done():
			s.Error("a publish was confirmed during the alarm")
		case <-time.After(300 * time.Millisecond):
		}
		s.alarm(s.T, false)
		cleared = true
		notice(false)
		for _, confirm := range sent {
			s.confirmed(confirm)
		}
	}},
	{"a broker that stops says so, and keeps what is durable", []string{quorum}, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		closed := s.conn.NotifyClose(make(chan *amqp.Error, 1))
		_, deliveries := s.consume(s.queue, 1)
		s.next(deliveries, "a")
		s.stop(s.T)
		s.ends(closed, amqp.ConnectionForced, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
		if _, err := amqp.Dial(s.url); err == nil {
			s.Error("it takes connections")
		}
		s.start(s.T)
		s.conn = s.dial()
		ch := s.channel()
		s.take(ch, s.queue, "a")
		s.take(ch, s.queue, "b")
	}},
	{"a broker that is killed keeps what it confirmed", []string{quorum}, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a")
		_, deliveries := s.consume(s.queue, 1)
		s.next(deliveries, "a")
		time.Sleep(s.settling) // see docs/decisions/0017
		s.kill(s.T)
		s.start(s.T)
		s.conn = s.dial()
		s.take(s.channel(), s.queue, "a")
	}},
}
