package cluster

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// TestTwoNodesAreLost: without a majority no queue takes or gives anything. The replica consumes from one node and publishes to another, which
// dies with what it has not confirmed, while acks still reach the first.
//
// Catches: a message acked whose letter or whose copy in the wait queue has no confirm: it would be lost; work that was answered during the
// outage done again after it; a replica that does not come back.
func TestTwoNodesAreLost(t *testing.T) {
	answer := make(chan struct{})
	var consuming, publishing, third leg
	for i, l := range []*leg{&publishing, &consuming, &third} {
		l.node = shared.Cluster.Nodes[i]
		l.open(t)
	}
	publishing.Refuse()
	third.Refuse()
	s := newStandVia(t, shared.Cluster.Nodes[0].URLVia(publishing.Addr+","+consuming.Addr+","+third.Addr), func(r testkit.Received) testkit.Action {
		held := testkit.Action{Status: http.StatusBadRequest}
		if strings.HasSuffix(r.Key, "held") {
			held.Wait = answer
		}
		switch {
		case strings.HasPrefix(r.Key, "reject"):
			return held
		case strings.HasPrefix(r.Key, "fail") && r.Number == 1: // RETRY_BACKOFF is over RETRY_HOLD: through a wait queue
			held.Status = http.StatusInternalServerError
			return held
		}
		return brief(r)
	})
	consuming.Refuse()
	s.must(publishing.Reopen())
	s.must(s.onAnyNode(func(c *testkit.Client) error {
		return c.PublishTo(s.ctx, s.queue, message("reject-now"), message("fail-now"), message("reject-held"), message("fail-held"))
	}))
	s.begun(map[string]int{"reject-now": 1, "fail-now": 2, "reject-held": 1, "fail-held": 1}) // the publisher is connected by now
	s.must(consuming.Reopen())
	s.must(third.Reopen())

	letter := publishing.Barrier(testkit.ToServer, testkit.Contains("reject-held"))
	s.must(third.node.Kill())
	s.must(consuming.node.Pause())
	t.Cleanup(func() { _ = consuming.node.Resume() }) // or nothing else could be cleaned up
	close(answer)
	s.must(letter.Wait(s.ctx))
	letter.Release()
	s.must(publishing.node.Kill())
	s.must(consuming.node.Resume())
	s.outage(3 * time.Second)
	s.must(shared.Cluster.StartAll(s.ctx))

	s.begun(map[string]int{"fail-held": 2})
	s.progress()
	letters := map[string]int{}
	for letters["reject-now"] == 0 || letters["reject-held"] == 0 {
		for _, l := range s.lettersNow() {
			letters[l.MessageId]++ // without a confirm it is published again: a dead letter is at least once
			if string(l.Body) != l.MessageId || l.Headers["x-rabbitonce-reason"] != "rejected" {
				t.Errorf("dead letter of %s (%q), %v", l.MessageId, l.Body, l.Headers)
			}
		}
	}
	if len(letters) != 2 {
		t.Errorf("dead letters: %v, want those of two rejects", letters)
	}
	s.allDone(map[string]int{"reject-now": 1, "fail-now": 2, "reject-held": 1, "fail-held": 2})
}

// leg is the replica's way to a node.
type leg struct {
	*testkit.FaultProxy
	node *testkit.Broker
}

func (l *leg) open(t *testing.T) {
	t.Helper()
	var err error
	if l.FaultProxy, err = testkit.NewFaultProxy(l.node.Addr, testkit.AMQP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// begun waits until so many POSTs of these IDs have begun.
func (s *stand) begun(posts map[string]int) {
	s.t.Helper()
	for id, n := range posts {
		s.must(s.service.Journal.WaitBegun(s.ctx, id, n))
	}
}

// outage lets time pass while nodes are down: the length of an outage is the test's subject.
func (s *stand) outage(length time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, length)
	defer cancel()
	<-ctx.Done()
	s.must(s.ctx.Err())
}
