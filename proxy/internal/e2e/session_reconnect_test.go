package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: goroutines, channels or deliveries that a lost connection leaves behind, a notice that nobody reads and that stops the AMQP library, a queue
// that stays without its consumer after some losses.
func TestManyReconnects(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "held" {
			return testkit.Action{Wait: release}
		}
		return testkit.Action{}
	})
	queues := []string{s.queue, s.queue + ".2", s.queue + ".3", s.queue + ".4"} // a connection each
	for _, queue := range queues[1:] {
		s.declare(queue)
	}
	publish := func(id string) {
		t.Helper()
		for _, queue := range queues {
			s.must(s.client.PublishTo(s.ctx, queue, message(id)))
		}
	}
	l := s.newLegs()
	r := s.start(l.env, env{"QUEUES": strings.Join(queues, ",")})
	publish("warm")
	s.must(s.service.Journal.WaitAnswered(s.ctx, len(queues)))
	base := r.goroutines()
	publish("held")
	s.underWay(2 * len(queues))
	for range 5 {
		r.waitConsuming()
		since := time.Now()
		l.amqp.Reset()
		for _, queue := range queues {
			r.lostFrom(queue, since, promptly)
		}
	}
	r.waitConsuming()
	close(release)
	s.must(s.service.Journal.WaitAnswered(s.ctx, 2*len(queues)))
	publish("last")
	s.must(s.service.Journal.WaitAnswered(s.ctx, 3*len(queues)))
	s.emptied()
	s.eventually("as many goroutines as before", func() (bool, error) {
		now := r.goroutines()
		return now <= base, fmt.Errorf("%v, at first %v", now, base)
	})
	s.settled()
	for _, queue := range queues {
		s.eventually("queue "+queue+" is empty", func() (bool, error) {
			ready, consumers, err := s.client.Depth(queue)
			return ready == 0 && consumers == 0, err
		})
	}
	for _, id := range []string{"warm", "held", "last"} {
		perQueue := map[string]int{}
		for _, e := range s.service.Journal.ByKey(id) {
			perQueue[e.Queue]++
		}
		for _, queue := range queues {
			if perQueue[queue] != 1 {
				t.Errorf("%d POSTs of %s from queue %s, want 1", perQueue[queue], id, queue)
			}
		}
	}
}

// goroutines is how many the program has.
func (r *replica) goroutines() float64 {
	r.stand.t.Helper()
	samples, err := r.Metrics(r.stand.ctx)
	r.stand.must(err)
	return samples["go_goroutines"]
}
