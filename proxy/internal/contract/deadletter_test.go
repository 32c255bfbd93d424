package contract

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// TestDeadLettersAreComplete rejects 400 messages and compares each letter with what was published.
func TestDeadLettersAreComplete(t *testing.T) {
	t.Parallel()
	const n = 400
	b := newBench(t, nil)
	answer := strings.Repeat("no such customer. ", 100) // longer than the first KiB, which is kept
	b.answer(422, answer)
	exchange, key := b.queue+"-exchange", "orders.created.eu"
	must(t, shared.client.DeclareExchange(exchange, "topic"))
	must(t, shared.client.Bind(b.queue, "orders.#", exchange))
	originals := map[string]amqp.Publishing{}
	var messages []testkit.Message
	began := time.Now()
	for i := range n {
		p := everyProperty(i)
		originals[p.MessageId] = p
		messages = append(messages, testkit.Message{Exchange: exchange, RoutingKey: key, Publishing: p})
	}
	must(t, shared.client.Publish(within(t), messages...))

	letters := b.letters(n)
	deadIDs := map[string]bool{}
	for _, letter := range letters {
		original, known := originals[letter.MessageId]
		if !known {
			t.Fatalf("a letter with ID %q, which was not published or came before", letter.MessageId)
		}
		delete(originals, letter.MessageId)
		headers := maps.Clone(letter.Headers)
		assertWhy(t, headers, map[string]any{
			"reason": "rejected", "attempts": int64(1), "status": int64(422), "response": answer[:1024],
			"queue": b.queue, "exchange": exchange, "routing-key": key, "expiration": "3600000", "user-id": "guest",
		})
		deadID, _ := headers["x-rabbitonce-dead-id"].(string)
		deadIDs[deadID] = true
		delete(headers, "x-rabbitonce-dead-id")
		assertTimes(t, headers, began)
		got := copyOf(letter)
		got.Headers = headers
		// These two do not travel: the one would delete the letter, the other must be its publisher's own.
		original.Expiration, original.UserId = "", ""
		if diff := cmp.Diff(original, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("letter differs from the message (-published +letter):\n%s", diff)
		}
	}
	if len(deadIDs) != n || deadIDs[""] {
		t.Errorf("%d different dead-ids in %d letters", len(deadIDs), n)
	}
	b.finish()
	b.assertPosts(n)
}

// assertWhy compares x-rabbitonce- headers and removes them from the table.
func assertWhy(t *testing.T, headers amqp.Table, want map[string]any) {
	t.Helper()
	for name, value := range want {
		full := "x-rabbitonce-" + name
		if diff := cmp.Diff(value, headers[full]); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", full, diff)
		}
		delete(headers, full)
	}
}

// assertTimes checks that began <= first-seen <= dead-at <= now, and removes the two.
func assertTimes(t *testing.T, headers amqp.Table, began time.Time) {
	t.Helper()
	read := func(name string) time.Time {
		value, _ := headers[name].(string)
		when, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		delete(headers, name)
		return when
	}
	first, dead := read("x-rabbitonce-first-seen"), read("x-rabbitonce-dead-at")
	if first.Before(began.Add(-time.Second)) || dead.Before(first) || dead.After(time.Now().Add(time.Second)) {
		t.Fatalf("first seen %v, dead at %v: out of order", first, dead)
	}
}

// TestDeadLetterSaysWhy holds reasons, attempts and status to what happened.
func TestDeadLetterSaysWhy(t *testing.T) {
	t.Parallel()
	const hangUp = 0
	for name, c := range map[string]struct {
		settings env
		status   int // the service's answer
		want     map[string]any
		absent   []string
	}{
		"rejected": {
			status: 400,
			want:   map[string]any{"reason": "rejected", "attempts": int64(1), "status": int64(400), "response": "why"},
		},
		"attempts exhausted": {
			settings: env{"RETRY_MAX_ATTEMPTS": "3", "RETRY_BACKOFF": "10ms"}, status: 500,
			want: map[string]any{"reason": "attempts-exhausted", "attempts": int64(3), "status": int64(500), "response": "why"},
		},
		"too old": {
			settings: env{"RETRY_MAX_AGE": "1ms", "RETRY_BACKOFF": "20ms"}, status: 503,
			want: map[string]any{"reason": "max-age", "status": int64(503), "response": "why"},
		},
		"unknown outcome": {
			settings: env{"FORWARD_ON_UNKNOWN": "deadletter"}, status: hangUp,
			want:   map[string]any{"reason": "unknown-outcome", "attempts": int64(1)},
			absent: []string{"status", "response"},
		},
		"unknown by status": {
			settings: env{"FORWARD_ON_UNKNOWN": "deadletter"}, status: 504,
			want: map[string]any{"reason": "unknown-outcome", "attempts": int64(1), "status": int64(504), "response": "why"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.settings)
			b.service.Behave(func(testkit.Received) testkit.Action {
				return testkit.Action{Close: c.status == hangUp, Status: c.status, Body: []byte("why")}
			})
			b.publish(text("one", "body"))
			letter := b.letters(1)[0]
			assertWhy(t, letter.Headers, c.want)
			for _, header := range c.absent {
				if value, there := letter.Headers["x-rabbitonce-"+header]; there {
					t.Errorf("x-rabbitonce-%s is %v, want none", header, value)
				}
			}
			if problem, _ := letter.Headers["x-rabbitonce-error"].(string); c.status == hangUp && problem == "" {
				t.Error("no x-rabbitonce-error for an outcome without an answer")
			}
			b.finish()
		})
	}
}

// TestDeadLetterQueue uses a queue that exists as it is, and declares a missing one as a quorum queue.
func TestDeadLetterQueue(t *testing.T) {
	t.Parallel()
	t.Run("that exists", func(t *testing.T) {
		t.Parallel()
		b := idleBench(t)
		graveyard, arguments := b.queue+"-graveyard", amqp.Table{"x-max-length": int32(1000)}
		must(t, shared.client.DeclareClassic(graveyard, arguments))
		b.answer(400, "")
		b.replica = launch(t, b.env().with(env{"DEADLETTER_QUEUE": "{queue}-graveyard"}))
		if s := b.waitState("consuming"); s.Queues[0].DeadLetterQueue != graveyard {
			t.Errorf("/status: dead letters go to %q", s.Queues[0].DeadLetterQueue)
		}
		b.publish(text("one", "body"))
		if letters := b.lettersIn(graveyard, 1); letters[0].MessageId != "one" {
			t.Errorf("letter of %q", letters[0].MessageId)
		}
		must(t, shared.client.DeclareClassic(graveyard, arguments)) // refused if it were another queue by now
		if there, err := shared.client.Exists(b.queue + ".dead"); err != nil || there {
			t.Errorf("a queue %s.dead was declared beside it (%v)", b.queue, err)
		}
		b.finish()
	})
	t.Run("that is missing", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, nil)
		b.answer(400, "")
		if there, err := shared.client.Exists(b.queue + ".dead"); err != nil || there {
			t.Errorf("the dead-letter queue was declared before it was needed (%v)", err)
		}
		b.publish(text("one", "body"))
		b.waitMetrics(func(m samples) bool { return m.sum("rabbitonce_dead_letters_total", b.queue) > 0 })
		lookAt(t, b.queue+".dead", 25) // more often than RabbitMQ 4 lets a message come back unless the queue says otherwise
		b.letters(1)
		var arguments amqp.Table
		if version, err := shared.broker.Version(); err != nil || !strings.HasPrefix(version, "RabbitMQ 3.") {
			must(t, err)
			arguments = amqp.Table{"x-delivery-limit": int64(-1)}
		}
		must(t, shared.client.DeclareQuorum(b.queue+".dead", arguments)) // refused for any other kind of queue
		b.finish()
	})
	t.Run("that was deleted", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, nil)
		b.answer(400, "")
		b.publish(text("one", "body"))
		b.letters(1)
		must(t, shared.client.Delete(b.queue+".dead"))
		b.publish(text("two", "body"))
		b.waitOutcomes(map[string]float64{"dead_letter": 2})
		letters, err := shared.client.Take(within(t), b.queue+".dead", 1)
		must(t, err)
		if letters[0].MessageId != "two" {
			t.Errorf("letter of %q, want two", letters[0].MessageId)
		}
		b.finish()
	})
}

// lookAt takes the head of a queue and gives it back, as the management UI does, so often.
func lookAt(t *testing.T, queue string, times int) {
	t.Helper()
	connection, err := amqp.Dial(shared.broker.URL)
	must(t, err)
	defer func() { must(t, connection.Close()) }()
	ch, err := connection.Channel()
	must(t, err)
	for n := range times {
		d, ok, err := ch.Get(queue, false)
		must(t, err)
		if !ok {
			t.Fatalf("the queue is empty after %d looks", n)
		}
		must(t, d.Nack(false, true))
	}
}

// TestTransientLetterIsPersistent: a message may die with the broker, its dead letter may not.
func TestTransientLetterIsPersistent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.answer(400, "")
	b.publish(amqp.Publishing{MessageId: "transient", DeliveryMode: amqp.Transient})
	if mode := b.letters(1)[0].DeliveryMode; mode != amqp.Persistent {
		t.Errorf("delivery mode %d, want %d", mode, amqp.Persistent)
	}
	b.finish()
}

// TestLetterOfHugeMessage: what cannot go into headers whole is shortened, the body is not.
func TestLetterOfHugeMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.answer(400, strings.Repeat("ä", 2000)) // cut within a character
	body := bytes.Repeat([]byte{0, 0xff, '\r', '\n'}, 1<<20)
	p := amqp.Publishing{MessageId: "huge", Body: body, Headers: amqp.Table{"big": strings.Repeat("x", 100_000)}}
	b.publish(p)
	letter := b.letters(1)[0]
	if !bytes.Equal(letter.Body, body) || letter.Headers["big"] != p.Headers["big"] {
		t.Error("body or header differ")
	}
	response, _ := letter.Headers["x-rabbitonce-response"].(string)
	if !strings.HasPrefix(response, strings.Repeat("ä", 500)) || len(response) > 1100 {
		t.Errorf("response of %d bytes", len(response))
	}
	b.finish()
}

// TestManyReasonsInOneQueue keeps letters of different messages apart when they are published at the same time.
func TestManyReasonsInOneQueue(t *testing.T) {
	t.Parallel()
	const each = 20
	b := newBench(t, env{"RETRY_MAX_ATTEMPTS": "1", "FORWARD_CONCURRENCY": "8"})
	b.service.Behave(func(r testkit.Received) testkit.Action {
		if strings.HasPrefix(r.Key, "failed") {
			return testkit.Action{Status: 500, Body: []byte(r.Key)}
		}
		return testkit.Action{Status: 400, Body: []byte(r.Key)}
	})
	var messages []amqp.Publishing
	for i := range each {
		messages = append(messages, text(fmt.Sprintf("failed-%d", i), ""), text(fmt.Sprintf("rejected-%d", i), ""),
			text("", fmt.Sprintf("missing-%d", i)))
	}
	b.publish(messages...)
	counts := map[string]int{}
	for _, letter := range b.letters(3 * each) {
		reason, _ := letter.Headers["x-rabbitonce-reason"].(string)
		counts[reason]++
		response, answered := letter.Headers["x-rabbitonce-response"]
		if answered && response != letter.MessageId || answered == (letter.MessageId == "") {
			t.Errorf("letter of %q carries the answer %q", letter.MessageId, response)
		}
	}
	want := map[string]int{"attempts-exhausted": each, "rejected": each, "missing-id": each}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	b.finish()
}
