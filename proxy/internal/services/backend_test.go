package services

import (
	"fmt"
	"testing"
)

// testBackend: the server in front is there and the service behind it is not. Then the front's status decides, and not
// all say the same: 502 may mean that the service broke off, so what was sent counts as unknown; 503 says to come again.
func testBackend(t *testing.T, k kind, h *host) {
	if k.absent == "" {
		return
	}
	s := newStand(t, h, env{"FORWARD_ON_UNKNOWN": "deadletter"})
	before := s.batch("before", 2*workers, nil)
	s.publish(before...)
	s.done(before...)
	backend := h.keepers[0]
	s.must(backend.stop())
	lost := s.batch("meanwhile", workers, nil)
	s.publish(lost...)
	if k.absent == "503" {
		s.deferred()
		s.must(backend.start())
		s.finished(len(s.published))
		s.comeAgain(lost)
		s.emptied()
		return
	}
	fates := map[string]fate{}
	for _, m := range lost {
		fates[m.id] = fate{reason: "unknown-outcome", statuses: []string{k.absent}}
	}
	s.settled(fates)
	s.must(backend.start())
}

// deferred waits until messages wait for their next attempt.
func (s *stand) deferred() {
	s.t.Helper()
	name := fmt.Sprintf("rabbitonce_waiting{queue=%q}", s.queue)
	s.eventually("messages are deferred", func() error {
		samples, err := s.replica.Metrics(s.ctx)
		if err == nil && samples[name] < workers {
			err = fmt.Errorf("%v wait", samples[name])
		}
		return err
	})
}

// comeAgain wants messages that were deferred to have been done once, by a later attempt that is not flagged.
func (s *stand) comeAgain(messages []message) {
	s.t.Helper()
	for _, m := range messages {
		got := s.story(m.id)
		if len(got.requests) != 1 || len(got.works) != 1 || got.requests[0].Attempt == "1" || got.requests[0].Unknown {
			s.t.Errorf("%s: %s; want one request, not the first attempt, not flagged", m.id, got)
		}
	}
}
