package fakebroker

import (
	"bytes"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

var consumerRules = []rule{
	{"an acknowledgement counts once, a second one ends the channel", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		ch, deliveries := s.consume(s.queue, 10)
		closed := ch.NotifyClose(make(chan *amqp.Error, 1))
		d := s.next(deliveries, "a")
		s.check(d.Ack(false))
		s.check(d.Ack(false))
		s.ends(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 1")
		if d := s.take(s.channel(), s.queue, "b"); !d.Redelivered {
			s.Error("what was unsettled on the channel is not redelivered")
		}
	}},
	{"a tag of another channel ends the channel", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a")
		_, deliveries := s.consume(s.queue, 10)
		s.next(deliveries, "a")
		other := s.channel()
		closed := other.NotifyClose(make(chan *amqp.Error, 1))
		s.check(other.Ack(1, false))
		s.ends(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 1")
	}},
	{"multiple settles all up to its tag", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b", "c")
		ch, deliveries := s.consume(s.queue, 10)
		s.next(deliveries, "a")
		d := s.next(deliveries, "b")
		s.next(deliveries, "c")
		s.check(d.Ack(true))
		s.check(ch.Close())
		s.take(s.channel(), s.queue, "c")
		s.empty(s.queue)
	}},
	{"multiple of a tag that is settled ends the channel", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		ch, deliveries := s.consume(s.queue, 10)
		closed := ch.NotifyClose(make(chan *amqp.Error, 1))
		s.next(deliveries, "a")
		d := s.next(deliveries, "b")
		s.check(d.Ack(false))
		s.check(d.Ack(true))
		s.ends(closed, amqp.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 2")
	}},
	{"the prefetch bounds what is unsettled", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b", "c", "d")
		_, deliveries := s.consume(s.queue, 2)
		a := s.next(deliveries, "a")
		s.next(deliveries, "b")
		getter := s.channel()
		s.take(getter, s.queue, "c") // it stayed in the queue
		s.check(a.Ack(false))
		s.next(deliveries, "d")
	}},
	{"the end of a channel gives back in order", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b", "c", "d")
		ch, deliveries := s.consume(s.queue, 3)
		for _, body := range []string{"a", "b", "c"} {
			s.next(deliveries, body)
		}
		s.check(ch.Close())
		_, deliveries = s.consume(s.queue, 10)
		for _, body := range []string{"a", "b", "c", "d"} {
			if d := s.next(deliveries, body); d.Redelivered != (body != "d") {
				s.Errorf("%s: redelivered %t", body, d.Redelivered)
			}
		}
	}},
	{"the end of a connection gives back", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b")
		_, deliveries := s.consume(s.queue, 10)
		s.next(deliveries, "a")
		s.check(s.conn.Close())
		s.conn = s.dial()
		_, deliveries = s.consume(s.queue, 10)
		s.next(deliveries, "a")
		s.next(deliveries, "b")
	}},
	{"what is given back comes again, marked, and a quorum queue counts", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a")
		_, deliveries := s.consume(s.queue, 10)
		d := s.next(deliveries, "a")
		if _, counted := d.Headers["x-delivery-count"]; counted || d.Redelivered {
			s.Errorf("the first delivery: %v, redelivered %t", d.Headers, d.Redelivered)
		}
		for n := int64(1); n <= 2; n++ {
			s.check(d.Nack(false, true))
			d = s.next(deliveries, "a")
			if count, _ := d.Headers["x-delivery-count"].(int64); !d.Redelivered || (s.kind == quorum) != (count == n) {
				s.Errorf("after %d: %v, redelivered %t", n, d.Headers, d.Redelivered)
			}
		}
	}},
	{"what is given back comes before the rest", nil, func(s *stand) {
		var arguments amqp.Table
		if s.kind == quorum { // without one, some versions put it behind the rest
			arguments = amqp.Table{"x-delivery-limit": int64(20)}
		}
		s.declare(s.queue, arguments)
		s.publish(s.queue, "a", "b", "c")
		_, deliveries := s.consume(s.queue, 1)
		d := s.next(deliveries, "a")
		s.check(d.Nack(false, true))
		s.check(s.next(deliveries, "a").Ack(false))
		s.next(deliveries, "b")
	}},
	{"a consumer that is cancelled gets no more, and keeps what it has", nil, func(s *stand) {
		s.declare(s.queue, nil)
		s.publish(s.queue, "a", "b", "c")
		ch, deliveries := s.consume(s.queue, 2)
		d := s.next(deliveries, "a")
		s.next(deliveries, "b")
		s.check(ch.Cancel("c", false))
		if d, open := <-deliveries; open {
			s.Fatalf("%q came after the cancel", d.Body)
		}
		s.check(d.Ack(false))
		s.take(s.channel(), s.queue, "c")
		s.check(ch.Close())
		s.take(s.channel(), s.queue, "b")
	}},
	{"the deletion of a queue cancels its consumers", nil, func(s *stand) {
		s.declare(s.queue, nil)
		ch, deliveries := s.consume(s.queue, 2)
		cancelled := ch.NotifyCancel(make(chan string, 1))
		_, err := s.channel().QueueDelete(s.queue, false, false, false)
		s.check(err)
		select {
		case tag := <-cancelled:
			if tag != "c" {
				s.Errorf("cancelled %q", tag)
			}
		case <-time.After(patience):
			s.Fatal("no notice")
		}
		if _, open := <-deliveries; open {
			s.Error("a delivery")
		}
		s.check(ch.Qos(1, 0, false)) // the channel lives on
	}},
	{"consumers take turns", nil, func(s *stand) {
		s.declare(s.queue, nil)
		_, one := s.consume(s.queue, 1)
		_, two := s.consume(s.queue, 1)
		s.publish(s.queue, "a", "b")
		for range 2 {
			select {
			case <-one:
				one = nil
			case <-two:
				two = nil
			case <-time.After(patience):
				s.Fatal("nothing came")
			}
		}
		if one != nil || two != nil {
			s.Error("one got both")
		}
	}},
	{"to consume a queue that is not there ends the channel", []string{classic}, func(s *stand) {
		_, err := s.channel().Consume(s.queue, "c", false, false, false, false, nil)
		s.refuses(err, amqp.NotFound, fmt.Sprintf("NOT_FOUND - no queue '%s' in vhost '/'", s.queue))
	}},
	{"a message arrives as it was published", nil, func(s *stand) {
		s.declare(s.queue, nil)
		sent := amqp.Publishing{
			Headers: amqp.Table{
				"text": "ä", "bytes": []byte{0, 1}, "true": true, "int": int32(-5), "long": int64(1) << 40, "short": int16(-2), "octet": byte(200),
				"small": int8(-3), "float": float32(1.5), "double": 2.5, "none": nil, "list": []any{"a", int64(1), amqp.Table{"x": "y"}},
				"time": time.Unix(1e9, 0), "table": amqp.Table{"inner": amqp.Table{}}, "decimal": amqp.Decimal{Scale: 2, Value: 314},
			},
			ContentType: "a", ContentEncoding: "b", DeliveryMode: 2, Priority: 3, CorrelationId: "c", ReplyTo: "d", MessageId: "e",
			Timestamp: time.Unix(1e9, 0), Type: "f", UserId: "guest", AppId: "g", Body: bytes.Repeat([]byte("0123456789"), 30_000),
		}
		s.publishOne(s.queue, sent)
		_, deliveries := s.consume(s.queue, 1)
		d := s.next(deliveries, string(sent.Body))
		sent.Body = nil // compared
		got := amqp.Publishing{
			Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority,
			CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId,
		}
		if diff := cmp.Diff(sent, got); diff != "" || d.RoutingKey != s.queue || d.Exchange != "" {
			s.Errorf("exchange %q, key %q (-sent +got):\n%s", d.Exchange, d.RoutingKey, diff)
		}
	}},
}
