package e2e

import (
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: the verdict done ignored, success not recorded, a duplicate acked without looking at the store's answer.
func TestDuplicateLater(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	r := s.start()
	s.publish("a")
	s.answered("a")
	s.publish("a", "b", "a")
	s.answered("b")
	r.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 2)
	s.settled()
	s.once("a", "b")
}

// Catches: the claim made after the POST, or copies in one process let through.
func TestDuplicateAtTheSameTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "a" {
			return testkit.Action{Wait: release}
		}
		return testkit.Action{}
	})
	s.start()
	s.publish("a", "a", "a", "b")
	s.begun("a", 1)
	s.answered("b") // delivered after the copies
	close(release)
	s.settled()
	s.once("a", "b")
}

// Catches: claims that are local to a process; busy taken for done, which would lose the message with its holder.
func TestDuplicateOnAnotherReplicaAtTheSameTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Wait: release} })
	single := env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1", "DEDUP_LEASE": "2s", "RETRY_HOLD": "2m"} // the copy stays here, however slow the counts are
	s.start(single)
	s.publish("a", "a")
	s.begun("a", 1)                                 // the first replica is full
	second := s.start(single, env{"PREFETCH": "4"}) // one of four may rest here
	second.waitMetric(`rabbitonce_duplicates_total{kind="busy",queue="{queue}"}`, 1)
	if ready, unacknowledged, err := s.counts(); err != nil || ready+unacknowledged != 2 {
		t.Errorf("%d ready, %d unacknowledged, %v: a copy was acked while the message was being worked on", ready, unacknowledged, err)
	}
	close(release)
	s.settled()
	s.once("a")
}

// Catches: records that do not outlive the process that wrote them.
func TestDuplicateOnAnotherReplicaLater(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	first := s.start()
	s.publish("a")
	s.answered("a")
	s.emptied()
	first.kill()
	s.start()
	s.publish("a", "b")
	s.answered("b")
	s.settled()
	s.once("a", "b")
}

// Catches: the queue left out of a record's identity.
func TestSameIDInTwoQueues(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	other := s.queue + ".other"
	s.declare(other)
	exchange := s.queue + ".created"
	s.must(s.client.DeclareExchange(exchange, "fanout"))
	s.must(s.client.Bind(s.queue, "", exchange))
	s.must(s.client.Bind(other, "", exchange))
	s.start(env{"QUEUES": s.queue + "," + other})
	for range 2 { // the second time both are duplicates
		s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, Publishing: message("a")}))
	}
	s.must(s.service.Journal.WaitAnswered(s.ctx, 2))
	s.settled()
	perQueue := map[string]int{}
	for _, e := range s.posts("a", 2) {
		perQueue[e.Queue]++
	}
	if perQueue[s.queue] != 1 || perQueue[other] != 1 {
		t.Errorf("POSTs by queue: %v, want one for each of two", perQueue)
	}
	if ready, _, err := s.client.Depth(other); err != nil || ready != 0 {
		t.Errorf("%d messages left in the second queue, %v", ready, err)
	}
}

// Catches: the memory store lacking a rule that the Redis store has.
func TestMemoryStore(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Key == "failing" && r.Number == 1:
			return testkit.Action{Status: 500}
		case r.Key == "rejected":
			return testkit.Action{Status: 400}
		}
		return testkit.Action{}
	})
	r := s.start(env{"DEDUP_STORE": "memory", "REDIS_URL": "", "RETRY_BACKOFF": "100ms"})
	s.publish("a", "a", "failing", "rejected")
	s.answered("a", "failing")
	s.letter("rejected", "rejected")
	s.emptied()
	s.publish("a", "failing")
	r.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 3)
	s.settled()
	s.posts("a", 1)
	s.posts("failing", 2)
	s.posts("rejected", 1)
}
