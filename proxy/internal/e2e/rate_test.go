package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// rising wants that POSTs, which all take longer than this, began with one and doubled ten times a second. A busy machine makes the steps shorter or
// longer by a little.
func rising(t *testing.T, posts []testkit.Entry) {
	t.Helper()
	after := func(n int) time.Duration { return posts[n-1].Began.Sub(posts[0].Began) }
	for n, least := range map[int]time.Duration{3: 120, 5: 200, 9: 300, 17: 400} { // 1 at once, 2 after 100 ms, 4 after 200, 8 after 300, ...
		if got := after(n); got < least*time.Millisecond {
			t.Errorf("%d were under way %v after the first", n, got)
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
	rising(t, s.service.Journal.Entries())
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
	rising(t, s.service.Journal.Entries()[slots:])
	close(again)
	s.answered(second...)
	s.settled()
	s.once(slices.Concat(first, second)...)
}

// Catches: FORWARD_RATE ignored, taken as a number of slots or saved up while nothing came; the setting of one queue that counts for another.
func TestRate(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	slow := s.queue + ".slow"
	s.declare(slow)
	r := s.start(env{
		"QUEUES": s.queue + "," + slow, "FORWARD_RATE": "20", "FORWARD_CONCURRENCY": "8", "LOG_LEVEL": "info",
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
		all := began(queue)
		for i, start := range all {
			n := 0
			for _, other := range all[i:] {
				if other.Sub(start) < 3*time.Second {
					n++
				}
			}
			// One more than three seconds' worth begins within three seconds; what a busy machine holds up for a moment comes beside the next.
			if n > 3*rate+5 {
				t.Errorf("%d POSTs of queue %s in three seconds, at %d a second", n, queue, rate)
			}
			if i == 0 && n < 3*rate*5/6 {
				t.Errorf("only %d POSTs of queue %s in three seconds, at %d a second", n, queue, rate)
			}
		}
	}
}
