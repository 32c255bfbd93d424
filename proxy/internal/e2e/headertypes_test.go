package e2e

import (
	"bytes"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// headerValues are one of every type of header value that a client can send, and nested ones
// (https://www.rabbitmq.com/amqp-0-9-1-errata#section_3).
func headerValues() map[string]any {
	return map[string]any{
		"t": true, "b": int8(-8), "B": uint8(200), "s": int16(-16), "u": uint16(60000), "I": int32(-32), "i": uint32(4_000_000_000), "l": int64(math.MinInt64),
		"f": float32(1.5), "d": math.MaxFloat64, "D": amqp.Decimal{Scale: 2, Value: -1999}, "S": "text \x00\xff", "S-empty": "", "T": time.Unix(1700000000, 0), "T-zero": time.Unix(0, 0),
		"x": []byte{0, 1, 0xff}, "V": nil, "A": []any{nil, int32(1), "a", []any{uint16(1)}, amqp.Table{"n": nil}}, "A-empty": []any{},
		"F": amqp.Table{"a": amqp.Table{"b": []any{int64(1), time.Unix(1, 0)}}, "": "no name"}, "F-empty": amqp.Table{},
		"L": stand64, // see unsigned
	}
}

// stand64 stands for an unsigned 64-bit value, type L, which the library cannot write: unsigned puts it into what the library wrote.
const stand64 = int64(0x4142434445464748)

type unsigned struct{ net.Conn }

func (c unsigned) Write(b []byte) (int, error) {
	_, err := c.Conn.Write(bytes.ReplaceAll(b, []byte("lABCDEFGH"), []byte("L\xff\xff\xff\xff\xff\xff\xff\xfe")))
	return len(b), err
}

// unsignedPublisher is a channel in confirm mode of a client that can send type L.
func (s *stand) unsignedPublisher() *amqp.Channel {
	s.t.Helper()
	connection, err := amqp.DialConfig(s.broker.URL, amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		c, err := net.DialTimeout(network, addr, 10*time.Second)
		return unsigned{c}, err
	}})
	s.must(err)
	s.t.Cleanup(func() { s.closed(connection.Close()) })
	ch, err := connection.Channel()
	s.must(err)
	s.must(ch.Confirm(false))
	return ch
}

// Catches: a type of header that arrives and cannot be sent again (the library ends the connection, and the message goes round for ever), one that changes on its way through a wait
// queue or to the dead letters, a property lost there.
//
// A classic queue of a broker before 4.0 hands out the bytes that the publisher sent, type L among them.
func TestEveryTypeOfHeaderTravels(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{amqp.QueueTypeClassic, amqp.QueueTypeQuorum} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			everyTypeOfHeader(t, kind)
		})
	}
}

func everyTypeOfHeader(t *testing.T, kind string) {
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number <= 2 { // twice by way of a wait queue, unless the broker is slow
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{Status: http.StatusBadRequest}
	})
	s.must(s.client.Delete(s.queue))
	if kind == amqp.QueueTypeClassic {
		s.must(s.client.DeclareClassic(s.queue, nil))
	} else {
		s.must(s.client.DeclareQuorum(s.queue, nil))
	}
	replica := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s", "FORWARD_CONCURRENCY": "30", "PREFETCH": "60"})
	publisher := s.unsignedPublisher()
	values := headerValues()
	for name, value := range values {
		p := everyProperty(name)
		p.Headers = amqp.Table{"v": value, "CC": []any{s.queue + ".nowhere"}}
		confirm, err := publisher.PublishWithDeferredConfirm("", s.queue, true, false, p)
		s.must(err)
		if !confirm.Wait() {
			t.Fatalf("the broker does not take type %s", name)
		}
	}
	for _, l := range s.letters(len(values)) {
		want, known := values[l.MessageId]
		if !known {
			t.Fatalf("a letter of %q, which came before or was not published", l.MessageId)
		}
		delete(values, l.MessageId)
		if l.MessageId == "L" {
			want = int64(-2) // as the broker writes it
		}
		if diff := cmp.Diff(want, l.Headers["v"], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("type %s (-published +in its letter):\n%s", l.MessageId, diff)
		}
		if diff := cmp.Diff(properties(everyProperty(l.MessageId)), properties(publishing(l))); diff != "" {
			t.Errorf("type %s (-published +in its letter):\n%s", l.MessageId, diff)
		}
		headers := l.Headers
		if diff := cmp.Diff([]any{s.queue + ".nowhere"}, headers["x-rabbitonce-cc"]); diff != "" || headers["x-rabbitonce-expiration"] != "3600000" || headers["x-rabbitonce-user-id"] != "guest" {
			t.Errorf("type %s: headers %v", l.MessageId, headers)
		}
		for name := range headers {
			if strings.HasPrefix(name, "x-rabbitonce-parked-") || name == "CC" {
				t.Errorf("type %s: header %s is left", l.MessageId, name)
			}
		}
	}
	replica.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, float64(len(headerValues())))
	s.settled()
}

// everyProperty is a message with all properties.
func everyProperty(id string) amqp.Publishing {
	p := message(id)
	p.ContentEncoding, p.Priority, p.CorrelationId, p.ReplyTo, p.Timestamp = "gzip", 3, "c", "r", time.Unix(1700000000, 0)
	p.Type, p.AppId, p.UserId, p.Expiration = "t", "a", "guest", "3600000"
	return p
}

// properties are those of a message that stay as they are in a letter.
func properties(p amqp.Publishing) amqp.Publishing {
	p.Headers, p.UserId, p.Expiration = nil, "", ""
	return p
}

// publishing is a delivery as it was published.
func publishing(d amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body,
	}
}
