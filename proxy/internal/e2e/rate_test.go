package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// rising wants that POSTs, which all last, began with one and doubled ten times a second since the service was last there: a busy machine makes them
// later, never earlier.
func (r *replica) rising(posts []testkit.Entry) {
	r.stand.t.Helper()
	ups := r.Logs.Find(func(l testkit.LogLine) bool { return l.Message() == "up" && l.Fields["part"] == "service" })
	up := loggedAt(ups[len(ups)-1])
	for n, least := range map[int]time.Duration{2: 100, 3: 200, 5: 300, 9: 400, 17: 500} {
		if got := posts[n-1].Began.Sub(up); got < least*time.Millisecond {
			r.stand.t.Errorf("%d were under way %v after the service came", n, got)
		}
	}
}

// Catches: a service that has just started, or come back, hit by all requests at once; slots that stay few.
func TestConcurrencyRises(t *testing.T) {
	t.Parallel()
	const slots = 32
	release := make(chan struct{})
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Wait: release} })
	s.service.Stop()
	r := s.start(env{"FORWARD_CONCURRENCY": "32", "PREFETCH": "64"})
	r.waitMissing("service")
	first := ids("first", slots)
	s.publish(first...)
	s.outage(time.Second) // longer than the rise takes
	s.must(s.service.Start())
	s.underWay(slots)
	r.rising(s.service.Journal.Entries())
	close(release)
	s.answered(first...)

	s.service.Stop()
	again := make(chan struct{})
	s.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Wait: again} })
	second := ids("second", slots)
	s.publish(second...)
	r.waitMissing("service")
	s.outage(time.Second)
	s.must(s.service.Start())
	s.underWay(2 * slots)
	r.rising(s.service.Journal.Entries()[slots:])
	close(again)
	s.answered(second...)
	s.settled()
	s.once(slices.Concat(first, second)...)
}

// Catches: FORWARD_RATE ignored, taken as a number of slots or saved up while nothing came; the setting of one queue that counts for another.
func TestRate(t *testing.T) {
	t.Parallel()
	const slots = 2
	s := newStand(t, nil)
	slow := s.queue + ".slow"
	s.declare(slow)
	r := s.start(env{
		"QUEUES": s.queue + "," + slow, "FORWARD_RATE": "20", "FORWARD_CONCURRENCY": strconv.Itoa(slots), "LOG_LEVEL": "info",
		"QUEUE_" + strings.ToUpper(strings.ReplaceAll(slow, ".", "_")) + "_FORWARD_RATE": "4",
	})
	r.waitConsuming()
	s.publish(ids("quick", 100)...)
	its := *s
	its.queue = slow
	its.publish(ids("slow", 30)...)
	began := func(queue string) []time.Time {
		var all []time.Time
		for _, e := range s.service.Journal.Entries() {
			if e.Queue == queue {
				all = append(all, e.Began)
			}
		}
		return all
	}
	for queue, rate := range map[string]int{s.queue: 20, slow: 4} {
		s.eventually("it is at work for four seconds", func() (bool, error) { return len(began(queue)) > 4*rate, nil })
		all, most := began(queue), 0
		for i, start := range all {
			n := 0
			for _, other := range all[i:] {
				if other.Sub(start) < 3*time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		// What has a slot may be held up for a moment, up to a fifth of a second, and then come beside the next.
		if most > 3*rate+1+slots+rate/5 || most < 3*rate*5/6 {
			t.Errorf("at most %d POSTs of queue %s in three seconds, at %d a second", most, queue, rate)
		}
	}
}
