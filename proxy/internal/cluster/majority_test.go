package cluster

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a message acked whose letter or whose copy in the wait queue has no confirm, work that was answered during the outage done
// again after it, a replica that does not come back. Without a majority no queue takes or gives anything.
func TestTwoNodesAreLost(t *testing.T) {
	answer := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case strings.HasPrefix(r.Key, "reject"):
			return testkit.Action{Wait: answer, Status: http.StatusBadRequest}
		case strings.HasPrefix(r.Key, "fail") && r.Number == 1:
			return testkit.Action{Wait: answer, Status: http.StatusInternalServerError} // RETRY_BACKOFF is over RETRY_HOLD: a wait queue
		}
		return brief(r)
	})
	s.must(s.onAnyNode(func(c *testkit.Client) error {
		return c.PublishTo(s.ctx, s.queue, message("reject-1"), message("fail-1"))
	}))
	s.must(s.service.Journal.WaitBegun(s.ctx, "reject-1", 1))
	s.must(s.service.Journal.WaitBegun(s.ctx, "fail-1", 1))
	for _, node := range s.others(s.consumersNode()) {
		s.must(node.Kill())
	}
	close(answer)
	s.must(s.service.Journal.Wait(s.ctx, func(entries []testkit.Entry) bool {
		return status(entries, "reject-1") == http.StatusBadRequest && status(entries, "fail-1") == http.StatusInternalServerError
	}))
	s.outage(3 * time.Second)
	s.must(shared.cluster.StartAll(s.ctx))

	s.must(s.service.Journal.WaitBegun(s.ctx, "fail-1", 2))
	s.progress()
	letters := s.lettersNow()
	for len(letters) == 0 {
		letters = s.lettersNow()
	}
	for _, l := range letters { // without a confirm it is published again: a dead letter is at least once
		if l.MessageId != "reject-1" || string(l.Body) != "reject-1" || l.Headers["x-rabbitonce-reason"] != "rejected" {
			t.Errorf("dead letter of %s (%q), %v", l.MessageId, l.Body, l.Headers)
		}
	}
	s.allDone(map[string]int{"reject-1": 1, "fail-1": 2})
}

// outage lets time pass while nodes are down: the length of an outage is the test's subject.
func (s *stand) outage(length time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, length)
	defer cancel()
	<-ctx.Done()
	s.must(s.ctx.Err())
}

func status(entries []testkit.Entry, key string) int {
	for _, e := range entries {
		if e.Key == key {
			return e.Status
		}
	}
	return 0
}
