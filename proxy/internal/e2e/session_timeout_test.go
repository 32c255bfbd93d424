package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a consumer that is not started again when the broker has taken its channel, a success that comes after that forgotten, messages that waited
// for their turn counted as attempted.
func acknowledgementTimeout(t *testing.T, broker *testkit.Broker) {
	release := make(chan struct{})
	s := newStandOn(t, broker, shared.Redis, func(r testkit.Received) testkit.Action {
		if r.Key == "slow" {
			return testkit.Action{Wait: release}
		}
		return testkit.Action{}
	})
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareQuorum(s.queue, nil)) // 4.3 has no such timeout for classic queues
	// The broker looks once a minute unless told otherwise. Channels take both values when they are opened.
	s.ctl("eval", "application:set_env(rabbit, consumer_timeout, 3000), application:set_env(rabbit, channel_tick_interval, 500).")
	r := s.start(env{"FORWARD_CONCURRENCY": "1", "PREFETCH": "4"})
	r.waitConsuming()
	since := time.Now()
	s.publish("slow", "b", "c", "d", "e")
	s.begun("slow", 1)
	words := []string{"PRECONDITION_FAILED", "timed out", "why: ack-timeout"}
	if !s.countsReturns() { // nor does such a broker close the channel of a quorum queue
		words = []string{"consumer_timeout", "why: cancelled"}
	}
	r.lost(since, 4*time.Second+promptly, words...)
	s.ctl("eval", "application:set_env(rabbit, consumer_timeout, 1800000), application:set_env(rabbit, channel_tick_interval, 60000).")
	close(release)
	s.answered("slow", "b", "c", "d", "e")
	s.settled()
	s.once("slow", "b", "c", "d", "e")
	s.noLetters()
}
