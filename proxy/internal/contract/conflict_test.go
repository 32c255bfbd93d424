package contract

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/proxy/internal/testkit"
)

// TestConflict: an ID that comes with another payload is a publisher's mistake, which a person has to see. The original stays done.
func TestConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(text("one", "pay 10"))
	b.waitOutcomes(map[string]float64{"done": 1})
	record := b.records()
	b.publish(text("one", "pay 20"))
	letter := b.letters(1)[0]
	if string(letter.Body) != "pay 20" {
		t.Errorf("letter %q", letter.Body)
	}
	assertWhy(t, maps.Clone(letter.Headers), map[string]any{"reason": "conflict", "queue": b.queue})
	if diff := cmp.Diff(record, b.records()); diff != "" {
		t.Errorf("the conflict changed the record (-before +after):\n%s", diff)
	}
	b.publish(text("one", "pay 10"), copyOf(letter))
	b.letters(1)
	b.waitOutcomes(map[string]float64{"done": 1, "dead_letter": 2, "duplicate": 1})
	if diff := cmp.Diff(record, b.records()); diff != "" {
		t.Errorf("copies changed the record (-before +after):\n%s", diff)
	}
	b.finish()
	b.assertPosts(1)
}

// TestConflictWithWorkUnderWay: the same while the original is with the service; neither is disturbed.
func TestConflictWithWorkUnderWay(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	must(t, shared.client.DeclareQuorum(b.queue+".dead", nil)) // either replica may be the one that buries
	finish := make(chan struct{})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Wait: finish} })
	b.publish(text("one", "pay 10"))
	must(t, b.service.Journal.WaitBegun(within(t), "one", 1))
	b.publish(text("one", "pay 20"), text("one", "pay 10"))
	other := launch(t, b.env()) // meets the original only in the store
	other.waitState("consuming")
	close(finish)
	letters, err := shared.client.Take(within(t), b.queue+".dead", 1)
	must(t, err)
	assertWhy(t, letters[0].Headers, map[string]any{"reason": "conflict"})
	other.stop()
	b.finish()
	b.assertPosts(1)
	if post := b.service.Journal.Entries()[0]; string(post.Body) != "pay 10" || post.Status != 200 {
		t.Errorf("POST of %q answered %d", post.Body, post.Status)
	}
}

// TestConflictAsDuplicate: DEDUP_ON_CONFLICT=duplicate looks at the ID alone.
func TestConflictAsDuplicate(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ON_CONFLICT": "duplicate"})
	b.publish(text("one", "first"))
	b.waitOutcomes(map[string]float64{"done": 1})
	b.publish(text("one", "second"))
	b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
	b.finish()
	b.assertPosts(1)
}

// TestNoConflict: headers and properties are not the payload; republished copies often differ in them.
func TestNoConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"done": 1})
	other := everyProperty(3)
	other.MessageId, other.Body = "one", []byte("body")
	b.publish(other)
	b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
	b.finish()
}

// TestRecordsExpire: no claim record is without an end.
func TestRecordsExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_RETENTION": "3d", "FORWARD_ON_UNKNOWN": "deadletter"})
	b.service.Behave(func(r testkit.Received) testkit.Action { return testkit.Action{Close: r.Key == "unknown"} })
	b.publish(text("done", ""), text("unknown", ""))
	b.waitOutcomes(map[string]float64{"done": 1, "dead_letter": 1})
	records := sortedNames(b.records())
	if len(records) != 2 {
		t.Errorf("records: %q", records)
	}
	for _, key := range records {
		left, err := shared.store.TTL(within(t), key).Result()
		must(t, err)
		if hours := left.Hours(); hours < 71 || hours > 72 {
			t.Errorf("%s expires in %v, want 72h", key, left)
		}
	}
	b.finish()
}
