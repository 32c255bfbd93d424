package services

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// testKilled: processes die in the middle of requests, before their work and after it. Only those requests are sent again, and they say
// that the work may be done.
func testKilled(t *testing.T, k kind, h *host) {
	s := newStand(t, h, withOneAtATime(k, env{"FORWARD_TIMEOUT": timeLimit.String()}))
	before, after := s.publishVictims(k)
	fates := map[string]fate{}
	for _, m := range before {
		fates[m.id] = fate{requests: 2, works: 1}
	}
	for _, m := range after {
		fates[m.id] = fate{requests: 2, works: 2}
	}
	s.settled(fates)
}

// testKilledDeadletter is the same where doing the work twice is worse than looking at some messages by hand.
func testKilledDeadletter(t *testing.T, k kind, h *host) {
	s := newStand(t, h, withOneAtATime(k, env{"FORWARD_ON_UNKNOWN": "deadletter"}))
	before, after := s.publishVictims(k)
	fates := map[string]fate{}
	for _, m := range before {
		fates[m.id] = fate{requests: 1, works: 0, reason: "unknown-outcome", statuses: k.broken()}
	}
	for _, m := range after {
		fates[m.id] = fate{requests: 1, works: 1, reason: "unknown-outcome", statuses: k.broken()}
	}
	s.settled(fates)
}

// withOneAtATime keeps a process that dies from taking other requests with it, so that it is known which are cut off.
func withOneAtATime(k kind, settings env) env {
	if k.crowded || k.alone {
		settings["FORWARD_CONCURRENCY"] = "1"
	}
	return settings
}

// publishVictims publishes messages that kill the process that serves them, before and after the work, amid others. Where nobody
// listens then, the others come at that time: in the moment of the death the system accepts connections that nobody will
// read, and the outcome of a request on such a one is unknown.
func (s *stand) publishVictims(k kind) (before, after []message) {
	s.t.Helper()
	const victims = 3
	for range victims {
		before = append(before, s.publishVictim(k, "before"))
		after = append(after, s.publishVictim(k, "after"))
	}
	return before, after
}

// publishVictim publishes one, and others after it.
func (s *stand) publishVictim(k kind, when string) message {
	s.t.Helper()
	victim := s.batch(when, 1, amqp.Table{"do": "die-" + when})[0]
	s.publish(victim)
	s.victims++
	switch {
	case k.alone:
		select {
		case <-s.host.keepers[0].deaths:
		case <-s.ctx.Done():
			s.t.Fatalf("%s killed nobody", victim.id)
		}
	case k.crowded: // who hands connections to the processes has to hear of the death first
		s.unknown(s.victims)
		s.quiet(300 * time.Millisecond)
	}
	s.publish(s.batch("bystander", 4, nil)...)
	return victim
}

// unknown waits until so many requests have ended unknown.
func (s *stand) unknown(n int) {
	s.t.Helper()
	name := fmt.Sprintf("rabbitonce_request_seconds_count{outcome=\"unknown\",queue=%q}", s.queue)
	s.eventually("requests are cut off", func() error {
		samples, err := s.replica.Metrics(s.ctx)
		if err == nil && samples[name] < float64(n) {
			err = fmt.Errorf("%v of %d", samples[name], n)
		}
		return err
	})
}

// broken are the statuses that dead letters may have after a process died.
func (k kind) broken() []string {
	if k.hangsUp {
		return []string{k.front, ""}
	}
	return []string{k.front}
}
