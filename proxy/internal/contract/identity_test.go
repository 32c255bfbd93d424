package contract

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// oddIDs are IDs that are all different, byte for byte, and that something on the way could take for one another, cut
// or refuse. All are valid UTF-8.
func oddIDs() []string {
	long := strings.Repeat("0123456789abcdef", 640) // 10 KiB
	return []string{
		"6fa459ea-ee8a-3ca4-894e-db77e160355e", "6FA459EA-EE8A-3CA4-894E-DB77E160355E", "{6fa459ea-ee8a-3ca4-894e-db77e160355e}",
		"a", "A", " a", "a ", "a\t", "a\x00", "\x00a", "a\r\n", "a\r\nX-Injected: 1", "a\nb",
		"é", "e\u0301", "ﬁ", "fi", "🐇", "🐇\u200d", "日本", "a/b", "a%2Fb", "a%252Fb", "a:b", "a%3Ab", "a,b", `a"b`, `a\b`, "0", "00", "0.0", "null", "{id}",
		strings.Repeat("x", 199), strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("x", 255),
		strings.Repeat("ü", 127), long, long + "0", long + "1", strings.ToUpper(long), "sha256:" + strings.Repeat("0", 64),
	}
}

// TestIDsAreByteExact publishes two copies of a message for each ID: POSTed once, under a legal key that tells the ID.
func TestIDsAreByteExact(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from    string
		longest int // bytes that the place can hold
		message func(id string) amqp.Publishing
	}{
		// A property is a short string: 255 bytes.
		"message-id":     {"message-id", 255, func(id string) amqp.Publishing { return amqp.Publishing{MessageId: id} }},
		"correlation-id": {"correlation-id", 255, func(id string) amqp.Publishing { return amqp.Publishing{CorrelationId: id} }},
		"header": {"header:x-message-id", 1 << 20, func(id string) amqp.Publishing {
			return amqp.Publishing{Headers: amqp.Table{"x-message-id": id}}
		}},
		"json": {"json:/order/id", 1 << 20, func(id string) amqp.Publishing {
			body, _ := json.Marshal(map[string]any{"order": map[string]string{"id": id}})
			return amqp.Publishing{Body: body, ContentType: "application/json"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, env{"DEDUP_ID_FROM": c.from})
			var want []string
			var messages []amqp.Publishing
			for _, id := range oddIDs() {
				if len(id) <= c.longest {
					want = append(want, id)
					messages = append(messages, c.message(id))
				}
			}
			b.publish(append(messages, messages...)...)
			n := float64(len(messages))
			b.waitOutcomes(map[string]float64{"done": n, "duplicate": n})
			var got []string
			for _, e := range b.service.Journal.Entries() {
				got = append(got, idOfKey(t, e.Key, want))
				if _, injected := e.Header["X-Injected"]; injected {
					t.Errorf("the ID %q became a header of its own", e.Key)
				}
			}
			if diff := cmp.Diff(want, got, sorted()); diff != "" {
				t.Errorf("IDs of POSTs (-want +got):\n%s", diff)
			}
			if records := b.records(); len(records) != len(want) {
				t.Errorf("%d records for %d IDs: %q", len(records), len(want), sortedNames(records))
			}
			b.finish()
		})
	}
}

// idOfKey reads an ID back from an Idempotency-Key as docs/handlers.md says: percent-encoded, or the digest of a long one.
func idOfKey(t *testing.T, key string, ids []string) string {
	t.Helper()
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			t.Fatalf("Idempotency-Key %q cannot be sent by every HTTP server", key)
		}
	}
	if len(key) > 512 {
		t.Fatalf("an Idempotency-Key of %d bytes", len(key))
	}
	for _, id := range ids {
		if len(url.PathEscape(id)) > 512 && key == "sha256:"+hexDigest(id) {
			return id
		}
	}
	id, err := url.PathUnescape(key)
	must(t, err)
	return id
}

// TestKeyIsStable: attempts, copies and restarts of one message show the service the same key.
func TestKeyIsStable(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"RETRY_MAX_ATTEMPTS": "2", "RETRY_BACKOFF": "10ms", "DEDUP_ID_FROM": "header:x-message-id"})
	b.answer(500, "")
	for _, id := range []string{"é\r\n", strings.Repeat("long", 2560)} {
		m := amqp.Publishing{Headers: amqp.Table{"x-message-id": id}}
		b.publish(m)
		b.publish(copyOf(b.letters(1)[0]))
		b.letters(1)
	}
	b.finish()
	again := launch(t, b.env().with(env{"DEDUP_ID_FROM": "header:x-message-id", "DEDUP_PREFIX": b.queue + "-2"}))
	b.answer(200, "")
	for _, id := range []string{"é\r\n", strings.Repeat("long", 2560)} {
		b.publish(amqp.Publishing{Headers: amqp.Table{"x-message-id": id}})
	}
	again.waitQueueOutcomes(b.queue, map[string]float64{"done": 2})
	counts := map[string]int{}
	for _, e := range b.service.Journal.Entries() {
		counts[e.Key]++
	}
	want := map[string]int{"%C3%A9%0D%0A": 5, "sha256:" + hexDigest(strings.Repeat("long", 2560)): 5}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("POSTs by key (-want +got):\n%s", diff)
	}
}

// TestIDsThatAreNotUTF8 come as bytes and as text of another encoding. They are IDs like any other.
func TestIDsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": "header:x-id"})
	var messages []amqp.Publishing
	for _, id := range []any{[]byte{0xff, 0xfe}, "\xff\xfd", "caf\xe9", "caf\xe8"} {
		messages = append(messages, amqp.Publishing{Headers: amqp.Table{"x-id": id}})
	}
	b.publish(append(messages, messages...)...)
	b.waitOutcomes(map[string]float64{"done": 4, "duplicate": 4})
	var keys []string
	for _, e := range b.service.Journal.Entries() {
		keys = append(keys, e.Key)
	}
	if diff := cmp.Diff([]string{"%FF%FE", "%FF%FD", "caf%E9", "caf%E8"}, keys, sorted()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	b.finish()
}

// TestNumbersAreIDs: integers have one text that all publishers agree on. Zero is what an unset field holds: two such messages are not one.
func TestNumbersAreIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": "header:x-id,json:/id"})
	b.publish(
		amqp.Publishing{Headers: amqp.Table{"x-id": int32(0)}}, amqp.Publishing{Headers: amqp.Table{"x-id": int64(0)}},
		amqp.Publishing{Headers: amqp.Table{"x-id": int64(-7)}}, amqp.Publishing{Headers: amqp.Table{"x-id": "-7"}},
		amqp.Publishing{Body: []byte(`{"id": 9007199254740993}`)}, amqp.Publishing{Body: []byte(`{"id": 9007199254740992}`)},
	)
	b.waitOutcomes(map[string]float64{"done": 3, "duplicate": 1, "dead_letter": 2})
	var keys []string
	for _, e := range b.service.Journal.Entries() {
		keys = append(keys, e.Key)
	}
	if diff := cmp.Diff([]string{"-7", "9007199254740993", "9007199254740992"}, keys, sorted()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	b.finish()
}

// TestSourcesStayApart: the same text found in two places is two IDs, and an earlier place wins.
func TestSourcesStayApart(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": "message-id,correlation-id,header:x-id,json:/id"})
	messages := []amqp.Publishing{
		{MessageId: "same", Body: []byte(`{"n": 1}`)},
		{CorrelationId: "same", Body: []byte(`{"n": 2}`)},
		{Headers: amqp.Table{"x-id": "same"}, Body: []byte(`{"n": 3}`)},
		{Body: []byte(`{"id": "same"}`)},
		// A copy of the first, whatever its later places hold.
		{MessageId: "same", CorrelationId: "other", Headers: amqp.Table{"x-id": "other"}, Body: []byte(`{"n": 1}`)},
	}
	b.publish(messages...)
	b.waitOutcomes(map[string]float64{"done": 4, "duplicate": 1})
	for _, e := range b.service.Journal.Entries() {
		if e.Key != "same" {
			t.Errorf("key %q, want same", e.Key)
		}
	}
	b.finish()
	b.assertPosts(4)
}
