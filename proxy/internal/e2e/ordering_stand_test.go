package e2e

import (
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// orderly are settings under which an attempt that a crash cut off is repeated soon. Every wait between attempts is longer than RETRY_HOLD: where no
// order is kept it would go through a wait queue.
func orderly(ordering string) env {
	return env{"ORDERING": ordering, "FORWARD_TIMEOUT": "2s", "DEDUP_LEASE": "2s", "RETRY_BACKOFF": "30ms", "RETRY_HOLD": "20ms", "PREFETCH": "12"}
}

// singleActive puts a queue with a single active consumer in the place of the stand's.
func (s *stand) singleActive() {
	s.t.Helper()
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareSource(s.queue, amqp.Table{"x-single-active-consumer": true}))
}

// inOrder wants the messages one at a time in this order: all POSTs of an ID follow each other, and each begins when the one before it has ended.
func (s *stand) inOrder(want []string, journals ...*testkit.Journal) {
	s.t.Helper()
	var entries []testkit.Entry
	for _, j := range append(journals, s.service.Journal) {
		entries = append(entries, j.Entries()...)
	}
	slices.SortFunc(entries, func(a, b testkit.Entry) int { return a.Began.Compare(b.Began) })
	s.inOrderOf(entries, want)
}

func (s *stand) inOrderOf(entries []testkit.Entry, want []string) {
	s.t.Helper()
	var order []string
	var earlier testkit.Entry
	for i, e := range entries {
		if i > 0 && (earlier.Open() || e.Began.Before(earlier.Ended)) {
			s.t.Errorf("POST of %s began %v before that of %s ended", e.Key, earlier.Ended.Sub(e.Began), earlier.Key)
		}
		if len(order) == 0 || order[len(order)-1] != e.Key {
			order = append(order, e.Key)
		}
		earlier = e
	}
	for i := range max(len(order), len(want)) {
		if i >= len(order) || i >= len(want) || order[i] != want[i] {
			s.t.Fatalf("place %d: the order is ...%v, want ...%v", i, part(order, i), part(want, i))
		}
	}
}

// part is what stands around a place.
func part(list []string, place int) []string {
	return list[min(len(list), max(0, place-3)):min(len(list), place+5)]
}

// keyed is a message with an ordering key.
func keyed(id, key string) amqp.Publishing {
	m := message(id)
	m.Headers = amqp.Table{"customer": key}
	return m
}

// without returns the list without some of its entries.
func without(list []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(e string) bool { return slices.Contains(some, e) })
}

// brief is how long a service works on a message when there should be time to disturb it.
const brief = 5 * time.Millisecond
