package services

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// fate is what must become of a message, in all.
type fate struct {
	requests int      // that the service read whole
	works    int      // executions
	reason   string   // of its dead letter; empty: there is none
	statuses []string // of which its dead letter has one, when the reason is given; "" is none
}

// once is the fate of a message that meets no trouble.
var once = fate{requests: 1, works: 1}

// settled wants these fates, of the messages that were published and have another one than once. It ends the replica.
func (s *stand) settled(others map[string]fate) {
	s.t.Helper()
	wanted := map[string]fate{}
	letters := 0
	for id := range s.published {
		wanted[id] = once
		if other, ok := others[id]; ok {
			wanted[id] = other
		}
		if wanted[id].reason != "" {
			letters++
		}
	}
	s.eventually("service has got all", func() error { return s.short(wanted) })
	found := s.letters(letters)
	s.finished(len(wanted) - letters)
	s.emptied()
	stories, err := s.host.journal.stories()
	s.must(err)
	for id, want := range wanted {
		s.fateOf(s.published[id], want, stories[id], found[id])
	}
}

// finished waits until the replica counts this many messages as done.
func (s *stand) finished(n int) {
	s.t.Helper()
	name := fmt.Sprintf("rabbitonce_deliveries_total{outcome=\"done\",queue=%q}", s.queue)
	s.eventually("messages are done", func() error {
		samples, err := s.replica.Metrics(s.ctx)
		if err == nil && samples[name] < float64(n) {
			err = fmt.Errorf("%v of %d", samples[name], n)
		}
		return err
	})
}

// short says what is missing in the journal.
func (s *stand) short(wanted map[string]fate) error {
	stories, err := s.host.journal.stories()
	if err != nil {
		return err
	}
	var missing []error
	for id, want := range wanted {
		if got := stories[id]; len(got.requests) < want.requests || len(got.works) < want.works {
			missing = append(missing, fmt.Errorf("%s: %s", id, got))
		}
	}
	return errors.Join(missing...)
}

func (s *stand) fateOf(m message, want fate, got story, letters []amqp.Delivery) {
	s.t.Helper()
	if len(got.requests) != want.requests || len(got.works) != want.works {
		s.t.Errorf("%s: %s; want %d requests, %d executions", m.id, got, want.requests, want.works)
	}
	for i, request := range got.requests {
		s.whole(m, request)
		// As many attempts as requests: none was used for a connection that brought nothing.
		if request.Attempt != strconv.Itoa(i+1) || request.Unknown != (i > 0) {
			s.t.Errorf("%s: request %d says attempt %s, unknown %t", m.id, i+1, request.Attempt, request.Unknown)
		}
	}
	switch {
	case want.reason == "" && len(letters) > 0:
		s.t.Errorf("%s: %d dead letters, %v", m.id, len(letters), letters[0].Headers)
	case want.reason != "" && len(letters) != 1:
		s.t.Errorf("%s: %d dead letters, want one", m.id, len(letters))
	case want.reason != "":
		s.letterOf(m, want, letters[0])
	}
}

func (s *stand) letterOf(m message, want fate, got amqp.Delivery) {
	s.t.Helper()
	status := ""
	if value, ok := got.Headers["x-rabbitonce-status"]; ok {
		status = fmt.Sprint(value)
	}
	if got.Headers["x-rabbitonce-reason"] != want.reason || !slices.Contains(want.statuses, status) || string(got.Body) != m.body {
		s.t.Errorf("%s: dead letter with %d bytes, %v; want %d bytes, reason %s, status in %q",
			m.id, len(got.Body), got.Headers, len(m.body), want.reason, want.statuses)
	}
}

// letters waits for n dead letters and returns all there are, by ID.
func (s *stand) letters(n int) map[string][]amqp.Delivery {
	s.t.Helper()
	byID := map[string][]amqp.Delivery{}
	taken, err := s.client.Take(s.ctx, s.dead, n)
	if n > 0 {
		s.must(err)
	}
	for _, l := range taken {
		byID[l.MessageId] = append(byID[l.MessageId], l)
	}
	return byID
}

// emptied ends the replica in good order and wants its queue to be empty then: whatever it had not acknowledged is back
// there, and a message that waits for its next attempt too. Then it wants no dead letter beyond those that were taken.
func (s *stand) emptied() {
	s.t.Helper()
	s.must(s.replica.Term())
	code, err := s.replica.Wait(s.ctx)
	s.must(err)
	if code != 0 {
		s.t.Errorf("the replica ended with %d", code)
	}
	s.eventually("queue has no consumer", func() error {
		_, consumers, err := s.client.Depth(s.queue)
		if err == nil && consumers > 0 {
			err = fmt.Errorf("%d consumers", consumers)
		}
		return err
	})
	for _, queue := range []string{s.queue, s.dead} {
		left, err := s.client.Drain(queue)
		s.must(err)
		for _, m := range left {
			s.t.Errorf("left in %s: %s, redelivered %t, %v", queue, m.MessageId, m.Redelivered, m.Headers)
		}
	}
}
