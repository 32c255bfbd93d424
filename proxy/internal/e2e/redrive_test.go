package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// summary is the last line of a redrive with --json.
type summary struct {
	Letters        int            `json:"letters"`
	LookedAt       int            `json:"looked_at"`
	PutBack        int            `json:"put_back"`
	ByReason       map[string]int `json:"by_reason"`
	OtherQueues    int            `json:"other_queues"`
	NotSelected    int            `json:"not_selected"`
	UnknownOutcome int            `json:"unknown_outcome"`
	ByBroker       int            `json:"by_broker"`
	Error          string         `json:"error"`
}

// oddMessages have what could change on the way: every type of header that the client can send, properties, bytes, CC.

func oddMessages(cc string) []amqp.Publishing {
	everything := amqp.Publishing{
		MessageId: "everything", Body: []byte("\x00\xff\r\n{"), ContentType: "text/x; charset=latin1", ContentEncoding: "gzip", Priority: 7,
		CorrelationId: "c", ReplyTo: "r", Type: "t", AppId: "a", UserId: "guest", Expiration: "3600000", Timestamp: time.Unix(1700000000, 0).UTC(),
		DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{
			"bool": true, "int8": int8(-1), "uint8": uint8(200), "int16": int16(-300), "uint16": uint16(60000), "int32": int32(-70000),
			"uint32": uint32(4e9), "int64": int64(-5e12), "float32": float32(0.5), "float64": 1e300, "decimal": amqp.Decimal{Scale: 2, Value: -314},
			"string": "ä\x00\xff", "bytes": []byte{0, 255}, "time": time.Unix(1700000001, 0).UTC(), "nil": nil, "table": amqp.Table{"a": []any{amqp.Table{"b": int32(1)}, nil}},
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x y/ü": "odd name", "x-rabbitonce-somebody-elses": "kept",
		},
	}
	plain := amqp.Publishing{MessageId: "plain", DeliveryMode: amqp.Persistent}
	copied := amqp.Publishing{MessageId: "copied", DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{cc}}, Body: []byte("1")}
	return []amqp.Publishing{everything, plain, copied}
}

// Catches: anything of a message that a redrive changes: the service is asked the same again, and the second letter is the first one.
func TestRedriveRoundTrip(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action {
		return testkit.Action{Status: http.StatusBadRequest, Body: []byte("no")}
	})
	exchange, cc := s.queue+".ex", s.queue+".cc"
	s.declare(cc)
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "orders.#", exchange))
	s.must(s.client.Bind(cc, cc, exchange))
	s.start()
	letters := map[string]amqp.Delivery{}
	var putBack []amqp.Publishing
	for _, m := range oddMessages(cc) {
		s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "orders.eu.new", Publishing: m}))
		l := s.letters(1)[0]
		letters[l.MessageId] = l
		putBack = append(putBack, amqp.Publishing{
			Headers: l.Headers, ContentType: l.ContentType, ContentEncoding: l.ContentEncoding, DeliveryMode: l.DeliveryMode, Priority: l.Priority,
			CorrelationId: l.CorrelationId, ReplyTo: l.ReplyTo, MessageId: l.MessageId, Timestamp: l.Timestamp, Type: l.Type, AppId: l.AppId, Body: l.Body,
		})
	}
	s.must(s.client.PublishTo(s.ctx, s.dead, putBack...))
	s.putBack(3)
	died := cmpopts.IgnoreMapEntries(func(name string, _ any) bool {
		return slices.Contains([]string{"x-rabbitonce-dead-id", "x-rabbitonce-dead-at", "x-rabbitonce-first-seen", "x-delivery-count", "x-acquired-count"}, name)
	})
	here := cmpopts.IgnoreFields(amqp.Delivery{}, "Acknowledger", "DeliveryTag", "ConsumerTag", "Redelivered")
	for _, l := range s.letters(3) {
		if diff := cmp.Diff(letters[l.MessageId], l, died, here); diff != "" {
			t.Errorf("the second letter of %s (-first +second):\n%s", l.MessageId, diff)
		}
		posts := s.posts(l.MessageId, 2)
		once, again := posts[0], posts[1]
		for _, name := range []string{"Delivery-Deadline", "Rabbitmq-Redelivered"} {
			once.Header.Del(name)
			again.Header.Del(name)
		}
		if id := again.Header.Get("RabbitMQ-Header-x-rabbitonce-dead-id"); id == "" {
			t.Errorf("the second POST of %s does not tell the dead-id", l.MessageId)
		}
		again.Header.Del("RabbitMQ-Header-x-rabbitonce-dead-id")
		if diff := cmp.Diff(once.Header, again.Header); diff != "" || once.BodySHA256 != again.BodySHA256 {
			t.Errorf("the second POST of %s, body %s and %s (-first +second):\n%s", l.MessageId, once.BodySHA256, again.BodySHA256, diff)
		}
	}
	if ready, _, err := s.client.Depth(cc); err != nil || ready != 1 {
		t.Errorf("the queue of CC has %d messages (%v), want the one that was published", ready, err)
	}
	s.settled()
}

// Catches: an expiration that acts on the way back.
func TestRedriveOfAnExpiredMessage(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(testkit.Received) testkit.Action {
		if healthy.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusBadRequest}
	})
	first := s.start()
	m := message("a")
	m.Expiration = "60000"
	s.must(s.client.PublishTo(s.ctx, s.queue, m))
	s.eventually("the letter is there", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 1, err
	})
	first.term()
	l := s.letters(1)[0]
	l.Headers["x-rabbitonce-expiration"] = "1" // in effect, long ago
	s.must(s.client.PublishTo(s.ctx, s.dead, amqp.Publishing{MessageId: "a", Headers: l.Headers, Body: l.Body, DeliveryMode: l.DeliveryMode}))
	healthy.Store(true)
	s.putBack(1)
	s.outage(300 * time.Millisecond) // time to be dropped
	s.start()
	s.answered("a")
	s.settled()
	s.noLetters()
}

// Catches: a letter whose record stays closed, counts that do not start again, an unknown outcome that is forgotten.
func TestRedriveOfEveryReason(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case healthy.Load():
			return testkit.Action{}
		case r.Key == "unknown":
			return testkit.Action{Close: true}
		case r.Key == "rejected":
			return testkit.Action{Status: http.StatusBadRequest}
		case r.Key == "old":
			return testkit.Action{Status: http.StatusServiceUnavailable}
		}
		return testkit.Action{Status: http.StatusInternalServerError}
	})
	settings := env{
		"RETRY_MAX_ATTEMPTS": "2", "RETRY_BACKOFF": "50ms", "RETRY_MAX_AGE": "400ms", "FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s",
	}
	first := s.start(settings)
	s.publish("rejected", "exhausted", "old", "unknown")
	first.waitMetric(`rabbitonce_dead_letters_total{queue="{queue}",reason="unknown-outcome"}`, 1)
	s.must(s.client.PublishTo(s.ctx, s.queue, amqp.Publishing{Body: []byte("nobody's"), DeliveryMode: amqp.Persistent}))
	other := message("unknown")
	other.Body = []byte("another body")
	s.must(s.client.PublishTo(s.ctx, s.queue, other))
	for _, reason := range []string{"rejected", "attempts-exhausted", "max-age", "missing-id", "conflict"} {
		first.waitMetric(fmt.Sprintf(`rabbitonce_dead_letters_total{queue="{queue}",reason=%q}`, reason), 1)
	}
	first.term()
	healthy.Store(true)
	got := s.putBack(6)
	want := map[string]int{"rejected": 1, "attempts-exhausted": 1, "max-age": 1, "unknown-outcome": 1, "missing-id": 1, "conflict": 1}
	if diff := cmp.Diff(want, got.ByReason); diff != "" || got.UnknownOutcome != 1 {
		t.Errorf("%d of unknown outcome, reasons (-want +got):\n%s", got.UnknownOutcome, diff)
	}
	before := s.service.Journal.Count()
	s.start(settings)
	s.answered("rejected", "exhausted", "old", "unknown")
	var reasons []string
	for _, l := range s.letters(2) {
		reasons = append(reasons, fmt.Sprint(l.Headers["x-rabbitonce-reason"]))
	}
	slices.Sort(reasons)
	if diff := cmp.Diff([]string{"conflict", "missing-id"}, reasons); diff != "" { // nothing has changed for these
		t.Errorf("letters after that (-want +got):\n%s", diff)
	}
	for _, e := range s.service.Journal.Entries()[before:] {
		if e.Attempt != "1" || e.Unknown != (e.Key == "unknown") {
			t.Errorf("POST of %s says attempt %s, unknown %t", e.Key, e.Attempt, e.Unknown)
		}
	}
	s.settled()
}

// Catches: a filter that puts back more, or less, than it says; letters that stay but change their order or get lost; a dry run that puts back.
func TestRedriveSelects(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*stand) error{
		"quorum":  func(s *stand) error { return s.client.DeclareQuorum(s.queue+".shared", nil) },
		"classic": func(s *stand) error { return s.client.DeclareClassic(s.queue+".shared", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			s.dead = s.queue + ".shared"
			s.must(declare(s))
			reason := func(r string) amqp.Table { return amqp.Table{"x-rabbitonce-reason": r} }
			s.must(s.client.PublishTo(s.ctx, s.dead,
				deadLetter("another", "x", nil), deadLetter(s.queue, "a", nil), deadLetter(s.queue, "b", reason("unknown-outcome")), message("stranger"),
				deadLetter(s.queue, "c", reason("max-age")), deadLetter(s.queue, "d,1", nil), deadLetter(s.queue, "e", nil)))
			run := func(flags ...string) ([]string, summary) {
				t.Helper()
				got := s.redriveWith(env{"DEADLETTER_QUEUE": "{queue}.shared"}, append([]string{s.queue, "--json"}, flags...)...)
				if got.code != 0 {
					t.Errorf("exit code %d", got.code)
				}
				return s.parse(got)
			}
			listed, last := run("--dry-run")
			if diff := cmp.Diff([]string{"a", "b", "c", "d,1", "e"}, listed); diff != "" || last.OtherQueues != 2 || last.UnknownOutcome != 1 {
				t.Errorf("dry run: %+v, letters (-want +got):\n%s", last, diff)
			}
			listed, _ = run("--dry-run", "--reason", "rejected,max-age", "--limit", "3") // the second return of some of them
			if diff := cmp.Diff([]string{"a", "c", "d,1"}, listed); diff != "" {
				t.Errorf("dry run with a limit (-want +got):\n%s", diff)
			}
			if ready, _, err := s.client.Depth(s.queue); err != nil || ready != 0 {
				t.Errorf("%d messages in the queue after dry runs (%v)", ready, err)
			}
			missed := s.redriveWith(env{"DEADLETTER_QUEUE": "{queue}.shared"}, s.queue, "--id", `d\,1,b`, "--id", "x")
			if missed.code != 1 || !strings.Contains(missed.out, "not found: x\n") {
				t.Errorf("an ID that is another queue's: exit code %d", missed.code)
			}
			s.contains(s.queue, "b", "d,1")
			run("--reason", "max-age,conflict")
			s.contains(s.queue, "c")
			if _, last = run("--limit", "1"); last.PutBack != 1 {
				t.Errorf("%d put back with a limit of 1", last.PutBack)
			}
			if _, last = run(); last.PutBack != 1 || last.OtherQueues != 2 {
				t.Errorf("what is left: %+v", last)
			}
			ours, err := s.client.Drain(s.queue)
			s.must(err)
			left, err := s.client.Drain(s.dead)
			s.must(err)
			if diff := cmp.Diff([]string{"a", "e"}, sortedIDs(ours)); diff != "" {
				t.Errorf("put back at the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"stranger", "x"}, sortedIDs(left)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func sortedIDs(messages []amqp.Delivery) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.MessageId)
	}
	slices.Sort(all)
	return all
}

// Catches: letters that a dry run loses or doubles, and an order that it changes in a queue that keeps it.
func TestRedriveDryRunLeavesTheLetters(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*stand) error{
		"quorum": func(s *stand) error { return nil }, "classic": func(s *stand) error {
			return errors.Join(s.client.Delete(s.dead), s.client.DeclareClassic(s.dead, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			s.must(declare(s))
			all := ids("a", 300)
			s.publishLetters(all...)
			if listed, _ := s.parse(s.redrive("--dry-run", "--json")); !slices.Equal(listed, all) {
				t.Errorf("%d letters listed, or in another order", len(listed))
			}
			if name == "classic" {
				s.lettersAre(all...)
				return
			}
			left, err := s.client.Take(s.ctx, s.dead, 300)
			s.must(err)
			if diff := cmp.Diff(slices.Sorted(slices.Values(all)), sortedIDs(left)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			s.noLetters()
		})
	}
}
