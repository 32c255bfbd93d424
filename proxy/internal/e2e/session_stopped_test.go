package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a process that was stopped past the heartbeat and goes on as if its session still lived: its ack would go to nobody, and its result be lost; a
// second POST while the claim of the stopped one lives.
func stoppedPastTheHeartbeat(t *testing.T, broker *testkit.Broker) {
	answer := make(chan struct{})
	s := newStandOn(t, broker, shared.Redis, func(testkit.Received) testkit.Action { return testkit.Action{Wait: answer} })
	single := env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1"}
	stopped := s.start(single)
	s.publish("a")
	s.begun("a", 1)
	other := s.start(single)
	other.waitConsuming()
	stopped.freeze()
	other.waitMetric(`rabbitonce_duplicates_total{kind="busy",queue="{queue}"}`, 1) // the broker has taken it back
	close(answer)
	s.answeredBy("a", 1)
	since := time.Now()
	s.must(stopped.Resume())
	stopped.lost(since, promptly)
	other.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 1)
	stopped.waitConsuming()
	s.settled()
	s.once("a")
	s.noLetters()
}
