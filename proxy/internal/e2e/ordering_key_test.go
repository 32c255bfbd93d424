package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: keys that wait for each other, messages of a key side by side or out of turn, a key that stands still and stops the rest.
func TestKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const customers, each = 4, 25
	var ready atomic.Bool
	together := make(chan struct{}) // closed when a message of every customer but one is at work
	var atWork atomic.Int64
	s := newStand(t, func(r testkit.Received) testkit.Action {
		action := testkit.Action{Delay: brief}
		switch {
		case strings.HasPrefix(r.Key, "blocked-") && !ready.Load():
			action.Status = http.StatusServiceUnavailable
		case strings.HasSuffix(r.Key, "-0") && r.Number == 1 && !strings.HasPrefix(r.Key, "blocked-"):
			if atWork.Add(1) == customers {
				close(together)
			}
			action.Wait = together
		case strings.HasSuffix(r.Key, "3") && r.Number <= 2:
			action.Status = http.StatusInternalServerError
		}
		return action
	})
	names := []string{"blocked"}
	for i := range customers {
		names = append(names, fmt.Sprintf("customer%d", i))
	}
	var stream []amqp.Publishing
	for i := range each {
		for _, name := range names {
			stream = append(stream, keyed(fmt.Sprintf("%s-%d", name, i), name))
		}
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, stream...))
	s.start(orderly("key:header:customer"), env{"PREFETCH": "200", "FORWARD_CONCURRENCY": "5"})
	for _, name := range names[1:] {
		s.answered(ids(name, each)...)
	}
	for _, e := range s.service.Journal.Entries() {
		if strings.HasPrefix(e.Key, "blocked-") && e.Key != "blocked-0" {
			t.Fatalf("%s did not wait for blocked-0", e.Key)
		}
	}
	ready.Store(true)
	s.answered(ids("blocked", each)...)
	s.settled()
	for _, name := range names {
		s.keyInOrder(name, ids(name, each))
	}
	s.noLetters()
}

// Catches: the same over replicas, where a key's messages would be shared out.
func TestKeysKeepTheirOrderOverReplicas(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		action := testkit.Action{Delay: brief}
		if strings.HasSuffix(r.Key, "3") && r.Number == 1 {
			action.Status = http.StatusInternalServerError
		}
		return action
	})
	s.singleActive()
	names := []string{"a", "b", "c"}
	var stream []amqp.Publishing
	for i := range 40 {
		for _, name := range names {
			stream = append(stream, keyed(fmt.Sprintf("%s-%d", name, i), name))
		}
	}
	settings := orderly("key:header:customer")
	first := s.start(settings)
	first.waitConsuming()
	second := s.start(settings)
	second.waitConsuming()
	s.must(s.client.PublishTo(s.ctx, s.queue, stream...))
	s.begun("a-10", 1)
	third := s.start(settings)
	third.waitConsuming()
	first.kill()
	s.begun("b-20", 1)
	second.term()
	s.begun("c-30", 1)
	third.kill()
	s.start(settings)
	for _, name := range names {
		s.answered(ids(name, 40)...)
	}
	s.settled()
	for _, name := range names {
		s.keyInOrder(name, ids(name, 40))
	}
	s.noLetters()
}

// keyInOrder wants the messages of one customer in order, one at a time.
func (s *stand) keyInOrder(name string, want []string) {
	s.t.Helper()
	var entries []testkit.Entry
	for _, e := range s.service.Journal.Entries() {
		if strings.HasPrefix(e.Key, name+"-") {
			entries = append(entries, e)
		}
	}
	s.inOrderOf(entries, want)
}
