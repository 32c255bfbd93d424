package contract

import (
	"maps"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// TestLetterPutBack copies a dead letter back to its queue, as a shovel does, once the service works again.
func TestLetterPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.answer(400, "broken")
	b.publish(everyProperty(7))
	letter := b.letters(1)[0]
	// A second death tells of the second attempt, not of the first.
	b.answer(422, "still broken")
	b.publish(copyOf(letter))
	again := b.letters(1)[0]
	assertWhy(t, maps.Clone(again.Headers), map[string]any{
		"reason": "rejected", "attempts": int64(1), "status": int64(422), "response": "still broken", "routing-key": b.queue,
	})
	if again.Headers["x-rabbitonce-dead-id"] == letter.Headers["x-rabbitonce-dead-id"] {
		t.Error("two deaths share a dead-id")
	}
	b.answer(200, "")
	b.publish(copyOf(again))
	b.waitOutcomes(map[string]float64{"dead_letter": 2, "done": 1})
	posts := b.waitPosts(3)
	if last := posts[2]; last.Status != 200 || last.Unknown || string(last.Body) != string(letter.Body) {
		t.Errorf("the message that was put back: status %d, flagged %v, body %q", last.Status, last.Unknown, last.Body)
	}
	// Done is done: one more copy of the letter is a duplicate.
	b.publish(copyOf(letter))
	b.waitOutcomes(map[string]float64{"dead_letter": 2, "done": 1, "duplicate": 1})
	b.finish()
	b.assertPosts(3)
}

// TestLetterPutBackWithoutHeaders: when no outcome was ever unknown, any tool can put a message back, also one that drops headers.
func TestLetterPutBackWithoutHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.answer(400, "broken")
	b.publish(text("one", "body"))
	b.letters(1)
	const undone = `rabbitonce_store_operations_total{operation="undead",result="ok"}`
	b.waitMetrics(func(m samples) bool { return m[undone] == 1 })
	if left := b.records(); len(left) != 0 {
		t.Errorf("records after the dead letter: %q", left)
	}
	b.answer(200, "")
	b.publish(text("one", "corrected body"))
	b.waitOutcomes(map[string]float64{"dead_letter": 1, "done": 1})
	b.finish()
	b.assertPosts(2)
}

// TestLetterOfUnknownOutcomePutBack: such a message is opened by its dead-id alone, not before the deadline of the request that nobody knows about, and its next POST is flagged.
func TestLetterOfUnknownOutcomePutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "2s"})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Close: true} })
	b.publish(text("one", "body"))
	letter := b.letters(1)[0]
	b.answer(200, "")

	b.publish(text("one", "body")) // a late copy from the publisher, which knows nothing of the death
	again := b.letters(1)[0]
	assertWhy(t, maps.Clone(again.Headers), map[string]any{
		"reason": "unknown-outcome", "dead-id": letter.Headers["x-rabbitonce-dead-id"],
	})
	wrong := copyOf(letter)
	wrong.Headers = maps.Clone(letter.Headers)
	wrong.Headers["x-rabbitonce-dead-id"] = strings.Repeat("0", len(letter.Headers["x-rabbitonce-dead-id"].(string)))
	b.publish(wrong)
	b.waitOutcomes(map[string]float64{"dead_letter": 3})
	b.assertPosts(1)

	b.publish(copyOf(letter))
	b.waitOutcomes(map[string]float64{"dead_letter": 3, "done": 1})
	posts := b.service.Journal.ByKey("one")
	if len(posts) != 2 || !posts[1].Unknown {
		t.Fatalf("%d POSTs, want a second one that is flagged: Delivery-Outcome-Unknown", len(posts))
	}
	deadline, err := time.Parse(time.RFC3339, posts[0].Header.Get("Delivery-Deadline"))
	if err != nil || posts[1].Began.Before(deadline) {
		t.Errorf("the second POST began at %v, the first one's deadline was %v, %v", posts[1].Began, deadline, err)
	}
	b.finish()
}

// TestLetterWithoutIDPutBack: the letter of a message without an ID comes back as often as it is put back, until it has one.
func TestLetterWithoutIDPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(amqp.Publishing{Body: []byte("nameless")})
	letter := b.letters(1)[0]
	b.publish(copyOf(letter))
	corrected := copyOf(b.letters(1)[0])
	corrected.MessageId = "named"
	b.publish(corrected)
	b.waitOutcomes(map[string]float64{"dead_letter": 2, "done": 1})
	b.finish()
	b.assertPosts(1)
}
