package contract

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// withoutID are messages in which DEDUP_ID_FROM=message-id,header:x-id,json:/id finds no ID. Each has a body of its own.
func withoutID() []amqp.Publishing {
	var messages []amqp.Publishing
	add := func(id string, headers amqp.Table, body string) {
		body = fmt.Sprintf(body, len(messages))
		messages = append(messages, amqp.Publishing{MessageId: id, Headers: headers, Body: []byte(body)})
	}
	for _, id := range []string{"", " ", " \t\r\n", "\x00", "\x00\x00 "} {
		add(id, nil, "message-id %d")
		add("", amqp.Table{"x-id": id}, "header %d")
		add("", amqp.Table{"x-id": []byte(id)}, "header of bytes %d")
	}
	for _, value := range []any{nil, false, true, 1.5, float32(0), []any{"a"}, amqp.Table{"a": "b"}, published(), amqp.Decimal{Value: 7}} {
		add("", amqp.Table{"x-id": value}, "header %d")
	}
	add("", amqp.Table{"X-ID": "other-case", "x-identity": "other-name"}, "another header %d")
	for _, member := range []string{
		`"other": 1`, `"id": null`, `"id": ""`, `"id": "  "`, `"id": "\u0000"`, `"id": false`, `"id": true`, `"id": {}`, `"id": []`,
		`"id": ["a"]`, `"ID": "other-case"`, `"id": "twice", "id": "twice"`, `"nested": {"id": "deeper"}`,
	} {
		add("", nil, `{"n": %d, `+member+`}`)
	}
	add("", nil, "not JSON %d: {\"id\": \"a\"}")
	add("", nil, `{"id": "cut short %d"`)
	add("", nil, "[%d]")
	return messages
}

const missingSources = "message-id,header:x-id,json:/id"

// TestMissingIDToDeadLetters is the default: nobody can tell such a message from its copy, so it is not POSTed.
func TestMissingIDToDeadLetters(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": missingSources})
	messages := withoutID()
	b.publish(messages...)
	b.publish(messages[0])
	n := len(messages) + 1
	b.waitOutcomes(map[string]float64{"dead_letter": float64(n)})
	var got []string
	for _, letter := range b.letters(n) {
		got = append(got, string(letter.Body))
		assertWhy(t, letter.Headers, map[string]any{"reason": "missing-id", "attempts": int64(0)})
		for _, absent := range []string{"x-rabbitonce-dead-id", "x-rabbitonce-status", "x-rabbitonce-response"} {
			if value, there := letter.Headers[absent]; there {
				t.Errorf("%s is %v, want none", absent, value)
			}
		}
	}
	var want []string
	for _, m := range append(messages, messages[0]) {
		want = append(want, string(m.Body))
	}
	if diff := cmp.Diff(want, got, sorted()); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	b.assertPosts(0)
	if left := b.records(); len(left) != 0 {
		t.Errorf("records of messages without an ID: %q", left)
	}
	b.finish()
}

// TestMissingIDHashed identifies such messages by their content: different ones stay apart, copies are duplicates.
func TestMissingIDHashed(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": missingSources, "DEDUP_ON_MISSING_ID": "hash"})
	messages := withoutID()
	b.publish(messages...)
	b.waitPosts(len(messages))
	b.publish(messages...)
	typed := messages[0]
	typed.Type = "another"
	b.publish(typed)
	n := float64(len(messages))
	b.waitOutcomes(map[string]float64{"done": n + 1, "duplicate": n})
	keys := map[string]bool{}
	for _, e := range b.service.Journal.Entries() {
		keys[e.Key] = true
		if len(e.Key) != 64 || e.Unknown {
			t.Errorf("Idempotency-Key %q, flagged %v: want a SHA-256 in hexadecimal, not flagged", e.Key, e.Unknown)
		}
	}
	if len(keys) != len(messages)+1 {
		t.Errorf("%d different keys for %d different messages", len(keys), len(messages)+1)
	}
	b.finish()
}

// TestMissingIDForwarded POSTs each without a claim: nothing is taken as a copy, no key pretends otherwise, and the service is warned.
func TestMissingIDForwarded(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": missingSources, "DEDUP_ON_MISSING_ID": "forward"})
	messages := withoutID()
	b.publish(messages...)
	b.publish(messages...)
	b.waitOutcomes(map[string]float64{"done": float64(2 * len(messages))})
	var want []string
	for _, m := range append(messages, messages...) {
		want = append(want, string(m.Body))
	}
	entries := b.service.Journal.Entries()
	if diff := cmp.Diff(want, bodies(entries), sorted()); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	for _, e := range entries {
		if _, there := e.Header["Idempotency-Key"]; there || !e.Unknown || e.Attempt != "1" {
			t.Errorf("a message without an ID was sent with %v", e.Header)
		}
	}
	if left := b.records(); len(left) != 0 {
		t.Errorf("records of messages without an ID: %q", left)
	}
	b.finish()
}

// TestMissingIDForwardedAndFailed keeps the ladder and the dead letters without a claim too.
func TestMissingIDForwardedAndFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ON_MISSING_ID": "forward", "RETRY_MAX_ATTEMPTS": "3", "RETRY_BACKOFF": "10ms"})
	b.answer(500, "broken")
	b.publish(amqp.Publishing{Body: []byte("nameless")})
	assertWhy(t, b.letters(1)[0].Headers, map[string]any{
		"reason": "attempts-exhausted", "attempts": int64(3), "status": int64(500), "response": "broken",
	})
	for i, e := range b.service.Journal.Entries() {
		if want := fmt.Sprint(i + 1); e.Attempt != want || !e.Unknown {
			t.Errorf("POST %s says Delivery-Attempt: %s, flagged %v", want, e.Attempt, e.Unknown)
		}
	}
	b.finish()
	b.assertPosts(3)
}
