package services

import (
	"fmt"
	"testing"
)

// testAbsent: the server is stopped while nothing is under way, and comes back. Connections that are refused use up
// nothing.
func testAbsent(t *testing.T, k kind, h *host) {
	s := newStand(t, h, nil)
	before := s.batch("before", 2*workers, nil)
	s.publish(before...)
	s.done(before...)
	outside := h.keepers[len(h.keepers)-1]
	s.must(outside.stop())
	s.publish(s.batch("meanwhile", 2*workers, nil)...)
	s.eventually("replica knows", func() error {
		samples, err := s.replica.Metrics(s.ctx)
		if err == nil && samples[fmt.Sprintf("rabbitonce_service_up{queue=%q}", s.queue)] != 0 {
			err = fmt.Errorf("the service is up: %v", samples)
		}
		return err
	})
	s.must(outside.start())
	s.settled(nil)
}
