package fakebroker

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var connectionRules = []rule{
	{"a wrong password is refused in words", []string{classic}, func(s *stand) {
		_, err := amqp.DialConfig(strings.Replace(s.url, "guest:guest", "guest:wrong", 1), amqp.Config{
			SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "guest", Password: "wrong"}},
		})
		if e, ok := err.(*amqp.Error); !ok || e.Code != amqp.AccessRefused { //nolint:errorlint // the library's own
			s.Errorf("got %v", err)
		}
	}},
	{"a vhost that is not there is refused", []string{classic}, func(s *stand) {
		_, err := amqp.Dial(s.url + "nowhere")
		s.refuses(err, amqp.NotAllowed, "NOT_ALLOWED - vhost nowhere not found")
	}},
	{"the end of a channel leaves the connection alone", []string{classic}, func(s *stand) {
		_, err := s.channel().QueueDeclarePassive(s.queue, true, false, false, false, nil)
		s.refuses(err, amqp.NotFound, fmt.Sprintf("NOT_FOUND - no queue '%s' in vhost '/'", s.queue))
		s.declare(s.queue, nil)
	}},
	{"a consumer tag that is taken ends the connection", []string{classic}, func(s *stand) {
		s.declare(s.queue, nil)
		closed := s.conn.NotifyClose(make(chan *amqp.Error, 1))
		ch, _ := s.consume(s.queue, 1)
		_, _ = ch.Consume(s.queue, "c", false, false, false, false, nil)
		s.ends(closed, amqp.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag 'c'")
	}},
}

// differing is the refusal of a declaration.
func differing(queue, name, received, current string) string {
	return fmt.Sprintf("PRECONDITION_FAILED - inequivalent arg '%s' for queue '%s' in vhost '/': received %s but current is %s", name, queue, received, current)
}

var queueRules = []rule{
	{"a declaration that differs is refused and names the difference", nil, func(s *stand) {
		s.declare(s.queue, amqp.Table{"x-message-ttl": int64(60000)})
		declare := func(durable bool, arguments amqp.Table) error {
			arguments["x-queue-type"] = s.kind
			_, err := s.channel().QueueDeclare(s.queue, durable, false, false, false, arguments)
			return err
		}
		s.check(declare(true, amqp.Table{"x-message-ttl": int32(60000)}))
		s.refuses(declare(true, amqp.Table{"x-message-ttl": int64(5)}), amqp.PreconditionFailed, differing(s.queue, "x-message-ttl", "'5'", "'60000'"))
		s.refuses(declare(true, amqp.Table{}), amqp.PreconditionFailed, differing(s.queue, "x-message-ttl", "none", "the value '60000' of type 'long'"))
		s.refuses(declare(true, amqp.Table{"x-message-ttl": int64(60000), "x-overflow": "reject-publish"}), amqp.PreconditionFailed,
			differing(s.queue, "x-overflow", "the value 'reject-publish' of type 'longstr'", "none"))
		if s.kind == classic {
			s.refuses(declare(false, amqp.Table{"x-message-ttl": int64(60000)}), amqp.PreconditionFailed, differing(s.queue, "durable", "'false'", "'true'"))
		}
	}},
	{"an argument that no queue of the kind has creates none", nil, func(s *stand) {
		_, err := s.channel().QueueDeclare(s.queue, true, false, false, false, amqp.Table{"x-queue-type": s.kind, "x-max-age": "1D"})
		s.refuses(err, amqp.PreconditionFailed, fmt.Sprintf(
			"PRECONDITION_FAILED - invalid arg 'x-max-age' for queue '%s' in vhost '/' of queue type rabbit_%s_queue", s.queue, s.kind))
		s.declare(s.queue, nil)
		_, err = s.channel().QueueDeclare(s.queue, true, false, false, false, amqp.Table{"x-queue-type": s.kind, "x-max-age": "?"})
		s.check(err) // and of a queue that is there it is not compared
	}},
	{"a reserved name is refused", []string{classic}, func(s *stand) {
		_, err := s.channel().QueueDeclare("amq.mine", true, false, false, false, nil)
		s.refuses(err, amqp.AccessRefused, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'")
	}},
	{"a declaration tells how many messages are ready", []string{classic}, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		q, err := s.channel().QueueDeclarePassive(s.queue, true, false, false, false, nil)
		s.check(err)
		if q.Messages != 2 || q.Consumers != 0 {
			s.Errorf("got %+v", q)
		}
	}},
	{"get takes the head, and says when there is none", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		ch := s.channel()
		s.take(ch, s.queue, "a")
		s.take(ch, s.queue, "b")
		s.empty(s.queue)
	}},
}

var publishRules = []rule{
	{"a return comes before the confirm", []string{classic}, func(s *stand) {
		ch := s.channel()
		returns := ch.NotifyReturn(make(chan amqp.Return)) // without room: what comes after it waits
		s.check(ch.Confirm(false))
		confirm, err := ch.PublishWithDeferredConfirm("", s.queue, true, false, amqp.Publishing{Body: []byte("x")})
		s.check(err)
		select {
		case <-confirm.Done():
			s.Fatal("the confirm came first")
		case <-time.After(300 * time.Millisecond):
		}
		if r := <-returns; r.ReplyCode != amqp.NoRoute || string(r.Body) != "x" || r.RoutingKey != s.queue {
			s.Errorf("returned %+v", r)
		}
		if !s.confirmed(confirm) {
			s.Error("it is a nack")
		}
	}},
	{"what nobody takes is confirmed and gone without mandatory", []string{classic}, func(s *stand) {
		ch := s.channel()
		returns := ch.NotifyReturn(make(chan amqp.Return, 1))
		s.check(ch.Confirm(false))
		confirm, err := ch.PublishWithDeferredConfirm("", s.queue, false, false, amqp.Publishing{})
		s.check(err)
		if !s.confirmed(confirm) || len(returns) > 0 {
			s.Error("refused or returned")
		}
	}},
	{"a full queue that rejects publishes answers with a nack", nil, func(s *stand) {
		s.declare(s.queue, amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
		for range 10 { // a quorum queue takes some more, before it says so
			if !s.publishOne(s.queue, amqp.Publishing{DeliveryMode: 2}) {
				return
			}
		}
		s.Error("all were taken")
	}},
	{"an exchange that is not there ends the channel", []string{classic}, func(s *stand) {
		ch := s.channel()
		closed := ch.NotifyClose(make(chan *amqp.Error, 1))
		s.check(ch.Publish("nowhere", "x", false, false, amqp.Publishing{}))
		s.ends(closed, amqp.NotFound, "NOT_FOUND - no exchange 'nowhere' in vhost '/'")
	}},
	{"another user's id ends the channel", []string{classic}, func(s *stand) {
		s.declare(s.queue, nil)
		ch := s.channel()
		closed := ch.NotifyClose(make(chan *amqp.Error, 1))
		s.check(ch.Publish("", s.queue, false, false, amqp.Publishing{UserId: "somebody"}))
		s.ends(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was 'guest'")
	}},
	{"CC routes to more queues", []string{classic}, func(s *stand) {
		s.declare(s.queue, nil)
		s.declare(s.queue+"-cc", nil)
		s.publishOne(s.queue, amqp.Publishing{Headers: amqp.Table{"CC": []any{s.queue + "-cc"}}, Body: []byte("x")})
		s.take(s.channel(), s.queue, "x")
		s.take(s.channel(), s.queue+"-cc", "x")
	}},
}
