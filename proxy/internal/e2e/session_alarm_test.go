package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: acks that stand still with the dead letters, an alarm that nobody sees, a shutdown that waits for a publish which cannot be confirmed, a message
// acked although its letter is not out.
func diskAlarm(t *testing.T, broker *testkit.Broker) {
	reject, accept := make(chan struct{}), make(chan struct{})
	stuck, orders := ids("stuck", 3), ids("order", 20)
	s := newStandOn(t, broker, shared.Redis, func(r testkit.Received) testkit.Action {
		switch {
		case slices.Contains(stuck, r.Key):
			return testkit.Action{Wait: reject, Status: 400}
		case r.Key == "early":
			return testkit.Action{Status: 400}
		}
		return testkit.Action{Wait: accept}
	})
	r := s.start(env{"FORWARD_CONCURRENCY": "40", "PREFETCH": "40", "FORWARD_TIMEOUT": patience.String(), "SHUTDOWN_GRACE": "6s"})
	s.publish("early")
	s.letter("early", "rejected") // the publishing connection is there, and has published
	s.publish(append(slices.Clone(stuck), orders...)...)
	s.underWay(1 + len(stuck) + len(orders))
	s.ctl("set_disk_free_limit", "1000000GB")
	s.eventuallyEvery(askDear, "disk alarm", func() (bool, error) {
		counting.Lock()
		defer counting.Unlock()
		out, err := broker.Ctl(s.ctx, "eval", "rabbit_alarm:get_alarms().")
		return strings.Contains(out, "disk"), err
	})
	close(reject)
	r.waitStatus("blocked", func(st status) bool {
		return slices.ContainsFunc(st.Missing, func(m string) bool {
			return strings.HasPrefix(m, "dead letters of queue "+s.queue) && holdsAll(m, []string{"blocks publishers", "disk"})
		})
	})
	r.waitLog("waiting", "part", "dead letters")
	close(accept)
	s.answered(orders...)
	s.eventuallyEvery(askDear, "the orders' acks flow", func() (bool, error) {
		ready, unacknowledged, err := s.counts()
		return ready+unacknowledged == len(stuck), err
	})
	began := time.Now()
	r.term()
	if took := time.Since(began); took > 6*time.Second+promptly {
		t.Errorf("the shutdown took %v with SHUTDOWN_GRACE=6s", took)
	}
	s.ctl("set_disk_free_limit", "10MB")
	s.start()
	letters := s.letters(len(stuck))
	s.settled()
	perID := map[string]int{}
	for _, l := range letters {
		perID[l.MessageId]++
	}
	for _, id := range stuck { // the first may have been on its way when the broker stopped reading
		if perID[id] == 0 {
			t.Errorf("no dead letter of %s", id)
		}
		s.posts(id, 1)
	}
	for _, id := range orders {
		s.posts(id, 1)
	}
}
