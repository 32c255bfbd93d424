package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a refused connection counted as an attempt, messages dead-lettered because the service is down.
func TestServiceDownWithABacklog(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.service.Stop()
	backlog := ids("order", 200)
	s.publish(backlog...)
	r := s.start(env{"RETRY_MAX_ATTEMPTS": "1"})
	r.waitMissing("service")
	s.outage(10 * time.Second)
	if n := s.service.Journal.Count(); n > 0 {
		t.Errorf("%d POSTs reached a service that was down", n)
	}
	s.must(s.service.Start())
	s.answered(backlog...)
	s.settled()
	s.once(backlog...)
	s.noLetters()
}

// Catches: the same for a service that goes down while work is under way; deliveries not given back after RETRY_HOLD, or lost when they are. The
// service answers what it has begun, so every outcome is known.
func TestServiceGoesDownInGoodOrder(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Delay: 20 * time.Millisecond} })
	backlog := ids("order", 200)
	r := s.start(env{"RETRY_MAX_ATTEMPTS": "1", "RETRY_HOLD": "1s"})
	s.publish(backlog...)
	s.underWay(40)
	s.must(s.service.Shutdown(s.ctx))
	r.waitMissing("service")
	s.eventually("what cannot be POSTed goes back", func() (bool, error) {
		ready, unacknowledged, err := s.counts()
		return ready > 0 && unacknowledged == 0, err
	})
	s.must(s.service.Start())
	s.answered(backlog...)
	s.settled()
	s.once(backlog...)
	s.noLetters()
}

// Catches: requests that broke with the service taken for failed or unreachable; all others counted.
func TestServiceCrashes(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Delay: 20 * time.Millisecond} })
	backlog := ids("order", 200)
	r := s.start(env{"FORWARD_TIMEOUT": "2s", "RETRY_BACKOFF": "100ms"})
	s.publish(backlog...)
	s.underWay(40)
	s.service.Stop()
	r.waitMissing("service")
	s.must(s.service.Start())
	s.answered(backlog...)
	s.settled()
	s.onceUnlessUnknown(backlog...)
	s.noLetters()
}
