package e2e

import (
	"net"
	"strconv"
	"sync/atomic"
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
// service answers what it has begun, so every outcome is known: it goes down while every connection is in use. One that is idle can be closed just
// when the next request is on its way, and the outcome of that is unknown, rightly.
func TestServiceGoesDownInGoodOrder(t *testing.T) {
	t.Parallel()
	const concurrency, before = 4, 40
	var begun atomic.Int64
	release := make(chan struct{})
	s := newStand(t, func(testkit.Received) testkit.Action {
		if begun.Add(1) > before {
			return testkit.Action{Wait: release}
		}
		return testkit.Action{Delay: 20 * time.Millisecond}
	})
	backlog := ids("order", 200)
	r := s.start(env{"RETRY_MAX_ATTEMPTS": "1", "RETRY_HOLD": "1s", "FORWARD_CONCURRENCY": strconv.Itoa(concurrency)})
	s.publish(backlog...)
	s.underWay(before + concurrency)
	down := make(chan error, 1)
	go func() { down <- s.service.Shutdown(s.ctx) }()
	s.eventually("the service takes no connection", func() (bool, error) {
		c, err := net.Dial("tcp", s.service.Addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil, err
	})
	close(release)
	s.must(<-down)
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
