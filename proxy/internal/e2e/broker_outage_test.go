package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// TestBrokerTrouble runs one after another what would disturb the other tests, on a broker of its own.
func TestBrokerTrouble(t *testing.T) {
	t.Parallel()
	broker := ownBroker(t, testkit.BrokerOptions{})
	t.Run("stuck dead-letter queue", func(t *testing.T) { stuckDeadLetterQueue(t, broker) })
	t.Run("message too large", func(t *testing.T) { messageTooLarge(t, broker) })
	t.Run("memory alarm", func(t *testing.T) { memoryAlarm(t, broker) })
	t.Run("memory alarm in a redrive", func(t *testing.T) { redriveInAlarm(t, broker) })
	t.Run("restart", func(t *testing.T) {
		brokerOutage(t, broker, broker.Restart)
	})
	t.Run("kill", func(t *testing.T) {
		brokerOutage(t, broker, func(ctx context.Context) error { return errors.Join(broker.Kill(), broker.Start(ctx)) })
	})
	t.Run("kill in a redrive", func(t *testing.T) { redriveInOutage(t, broker) })
}

// Catches: a session that does not come back, deliveries of the old session settled on the new one (lost), redelivered ones POSTed
// again although their success is on record, work given up with its session.
func brokerOutage(t *testing.T, broker *testkit.Broker, breakIt func(context.Context) error) {
	s := newStandOn(t, broker, shared.Redis, func(testkit.Received) testkit.Action {
		return testkit.Action{Delay: 50 * time.Millisecond}
	})
	orders := ids("order", 400)
	s.publish(orders...)
	r := s.start()
	s.underWay(60)
	broken := make(chan error, 1)
	go func() { broken <- breakIt(s.ctx) }()
	r.waitLog("waiting", "part", "consumer")
	if s.service.Journal.Count() == len(orders) {
		t.Error("everything was done before the broker went down: this shows nothing")
	}
	s.must(<-broken)
	s.dial()
	s.answered(orders...)
	r.saysNoLetters()
	s.settled()
	s.once(orders...)
}

// saysNoLetters wants no dead letter counted. A broker of version 3.10 that was killed may leave a quorum queue that nobody used without a
// leader, so that the dead letters themselves cannot be looked at.
func (r *replica) saysNoLetters() {
	r.stand.t.Helper()
	samples, err := r.Metrics(r.stand.ctx)
	r.stand.must(err)
	for sample, n := range samples {
		if strings.HasPrefix(sample, "rabbitonce_dead_letters_total") && n > 0 {
			r.stand.t.Errorf("%s is %v", sample, n)
		}
	}
}

// Catches: letters published on the consumers' connection (acks stand still with them), a message acked although its letter is not out, a copy
// POSTed while the letter waits, letters given up.
func memoryAlarm(t *testing.T, broker *testkit.Broker) {
	reject, accept := make(chan struct{}), make(chan struct{})
	rejects := ids("reject", 5)
	s := newStandOn(t, broker, shared.Redis, func(r testkit.Received) testkit.Action {
		if slices.Contains(rejects, r.Key) {
			return testkit.Action{Wait: reject, Status: 400}
		}
		return testkit.Action{Wait: accept}
	})
	orders := ids("order", 40)
	s.start(env{"FORWARD_CONCURRENCY": "60", "PREFETCH": "60"})
	s.publish(append(append(slices.Clone(rejects), rejects...), orders...)...) // a copy of each reject
	s.underWay(len(rejects) + len(orders))
	s.watermark("0.0000001")
	close(reject)
	s.eventually("the broker blocks who published", func() (bool, error) {
		out, err := broker.Ctl(s.ctx, "list_connections", "--no-table-headers", "state")
		return slices.Contains(strings.Fields(out), "blocked"), err
	})
	close(accept)
	s.answered(orders...)
	s.eventually("the orders' acks flow", func() (bool, error) {
		ready, unacknowledged, err := s.counts()
		return ready+unacknowledged == 2*len(rejects), fmt.Errorf("%d ready, %d unacknowledged, %w", ready, unacknowledged, err)
	})
	s.outage(2 * time.Second)
	if n := s.left(); n != 2*len(rejects) {
		t.Errorf("%d messages left, want %d: one was acked although its letter cannot be out", n, 2*len(rejects))
	}
	if letters, _, err := s.client.Depth(s.dead); err != nil || letters != 0 {
		t.Errorf("%d dead letters, %v: the alarm does not block", letters, err)
	}
	for _, id := range append(rejects, orders...) {
		s.posts(id, 1)
	}
	s.watermark("0.6")
	letters := s.letters(len(rejects))
	s.settled()
	more, err := s.client.Drain(s.dead)
	s.must(err)
	perID := map[string]int{}
	for _, l := range append(letters, more...) {
		perID[l.MessageId]++
	}
	for _, id := range rejects { // a copy that comes after its message's letter is a message of its own
		if perID[id] == 0 {
			t.Errorf("no dead letter of %s", id)
		}
	}
}

// watermark sets the share of memory at which the broker raises its alarm and blocks publishers.
func (s *stand) watermark(share string) {
	s.t.Helper()
	_, err := s.broker.Ctl(s.ctx, "set_vm_memory_high_watermark", share)
	s.must(err)
}
