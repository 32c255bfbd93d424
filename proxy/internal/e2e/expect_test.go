package e2e

import (
	"context"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// counting lets one rabbitmqctl run at a time: each starts an Erlang machine.
var counting sync.Mutex

// counts returns how many messages of the queue are ready and how many are unacknowledged.
func (s *stand) counts() (ready, unacknowledged int, err error) {
	counting.Lock()
	defer counting.Unlock()
	return s.broker.QueueCounts(s.ctx, s.queue)
}

// emptied waits until the queue has no message, neither ready nor unacknowledged.
func (s *stand) emptied() {
	s.t.Helper()
	s.eventuallyEvery(askDear, "queue is empty", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue) // cheaper than the counts
		if err != nil || ready > 0 {
			return false, err
		}
		ready, unacknowledged, err := s.counts()
		return err == nil && ready == 0 && unacknowledged == 0, err
	})
}

// settled is emptied, and then makes sure: once the replicas are gone, whatever was not acknowledged would come back.
func (s *stand) settled() {
	s.t.Helper()
	s.emptied()
	for _, r := range s.replicas {
		r.kill()
	}
	ready := 0
	s.eventually("queue has no consumer", func() (bool, error) {
		n, consumers, err := s.client.Depth(s.queue)
		ready = n
		return err == nil && consumers == 0, err
	})
	if ready > 0 {
		s.t.Errorf("%d messages came back to the queue: they were not acknowledged", ready)
	}
}

// answered waits until each of the IDs was answered with a 2xx.
func (s *stand) answered(ids ...string) {
	s.t.Helper()
	s.must(s.service.Journal.Wait(s.ctx, func(entries []testkit.Entry) bool {
		good := map[string]bool{}
		for _, e := range entries {
			if e.Status/100 == 2 {
				good[e.Key] = true
			}
		}
		for _, id := range ids {
			if !good[id] {
				return false
			}
		}
		return true
	}))
}

// begun waits until n POSTs of an ID have begun.
func (s *stand) begun(id string, n int) {
	s.t.Helper()
	s.must(s.service.Journal.WaitBegun(s.ctx, id, n))
}

// underWay waits until n POSTs have begun: the latest is at work.
func (s *stand) underWay(n int) {
	s.t.Helper()
	s.must(s.service.Journal.Wait(s.ctx, func(entries []testkit.Entry) bool { return len(entries) >= n }))
}

// posts returns the POSTs of an ID and fails the test unless there are n of them, one at a time.
func (s *stand) posts(id string, n int) []testkit.Entry {
	s.t.Helper()
	entries := s.service.Journal.ByKey(id)
	if len(entries) != n {
		s.t.Fatalf("%d POSTs of %s, want %d", len(entries), id, n)
	}
	if pairs := s.service.Journal.Overlaps(id); len(pairs) > 0 {
		s.t.Errorf("%d pairs of POSTs of %s at the same time", len(pairs), id)
	}
	return entries
}

// once wants exactly one POST for each ID, its first attempt, not flagged and answered 2xx; and no POST of anything else.
func (s *stand) once(ids ...string) {
	s.t.Helper()
	keys := s.service.Journal.Keys()
	for _, id := range ids {
		entries := keys[id]
		delete(keys, id)
		if len(entries) != 1 {
			s.t.Errorf("%d POSTs of %s, want 1", len(entries), id)
			continue
		}
		if e := entries[0]; e.Status/100 != 2 || e.Attempt != "1" || e.Unknown {
			s.t.Errorf("POST of %s: attempt %s, unknown %t, answered %d; want attempt 1, known, 2xx", id, e.Attempt, e.Unknown, e.Status)
		}
	}
	for id, entries := range keys {
		s.t.Errorf("%d POSTs of %q, which nobody published", len(entries), id)
	}
}

// onceUnlessUnknown wants exactly one 2xx for each ID, and every attempt but the first flagged: only unknown outcomes were repeated.
func (s *stand) onceUnlessUnknown(ids ...string) {
	s.t.Helper()
	keys := s.service.Journal.Keys()
	for _, id := range ids {
		good := 0
		for i, e := range keys[id] {
			if good > 0 {
				s.t.Errorf("POST %d of %s after a success", i+1, id)
			}
			if e.Status/100 == 2 {
				good++
			}
			// A request that the service never read, since it crashed just then, has a number too.
			if n, err := strconv.Atoi(e.Attempt); err != nil || n <= i || e.Unknown != (n > 1) {
				s.t.Errorf("POST %d of %s says attempt %s, unknown %t", i+1, id, e.Attempt, e.Unknown)
			}
		}
		if good != 1 {
			s.t.Errorf("%d successes of %s in %d POSTs, want 1", good, id, len(keys[id]))
		}
	}
}

// repeated wants an attempt after one whose outcome is unknown: it says so, and it came when the deadline of the earlier one, as the service was told
// it, had passed.
func (s *stand) repeated(earlier, later testkit.Entry) {
	s.t.Helper()
	s.flagged(later, 2)
	text := earlier.Header.Get("Delivery-Deadline")
	deadline, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.t.Fatalf("Delivery-Deadline: %v", err)
	}
	if later.Began.Before(deadline) {
		s.t.Errorf("the repeat began %v before the deadline %s of the attempt whose outcome is unknown", deadline.Sub(later.Began), text)
	}
}

func (s *stand) flagged(e testkit.Entry, attempt int) {
	s.t.Helper()
	if e.Attempt != strconv.Itoa(attempt) || !e.Unknown {
		s.t.Errorf("POST of %s says attempt %s, unknown %t; want attempt %d, unknown", e.Key, e.Attempt, e.Unknown, attempt)
	}
}

// letters returns what is in the dead letters, when that is at least n.
func (s *stand) letters(n int) []amqp.Delivery {
	s.t.Helper()
	letters, err := s.client.Take(s.ctx, s.dead, n)
	s.must(err)
	more, err := s.client.Drain(s.dead)
	s.must(err)
	return append(letters, more...)
}

// letter wants exactly one dead letter, of this ID and for this reason.
func (s *stand) letter(id, reason string) amqp.Delivery {
	s.t.Helper()
	letters := s.letters(1)
	if len(letters) != 1 {
		s.t.Fatalf("%d dead letters, want 1", len(letters))
	}
	s.lettersOf(letters, id, reason)
	return letters[0]
}

func (s *stand) lettersOf(letters []amqp.Delivery, id, reason string) {
	s.t.Helper()
	for _, l := range letters {
		if l.MessageId != id || string(l.Body) != string(message(id).Body) || l.Headers["x-rabbitonce-reason"] != reason {
			s.t.Errorf("dead letter %q, body %q, reason %v; want %q whole, reason %s", l.MessageId, l.Body, l.Headers["x-rabbitonce-reason"], id, reason)
		}
	}
}

// noLetters wants no dead letter.
func (s *stand) noLetters() {
	s.t.Helper()
	letters, err := s.client.Drain(s.dead)
	s.must(err)
	for _, l := range letters {
		s.t.Errorf("dead letter of %s: %v", l.MessageId, l.Headers)
	}
}

// outage lets time pass while something is down: the length of an outage is the test's subject.
func (s *stand) outage(length time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, length)
	defer cancel()
	<-ctx.Done()
	s.must(s.ctx.Err())
}

// answeredBy waits until the n-th POST of an ID was answered.
func (s *stand) answeredBy(id string, n int) {
	s.t.Helper()
	s.must(s.service.Journal.Wait(s.ctx, func(entries []testkit.Entry) bool {
		for _, e := range entries {
			if e.Key == id && e.Number == n && e.Status != 0 {
				return true
			}
		}
		return false
	}))
}
