package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: requests cut off although there is time, deliveries lost or counted that were not in a POST.
func TestTermUnderLoad(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Delay: 100 * time.Millisecond} })
	orders := ids("order", 200)
	settings := env{"RETRY_MAX_ATTEMPTS": "1", "SHUTDOWN_GRACE": "10s"}
	first := s.start(settings)
	s.publish(orders...)
	s.underWay(30)
	began := time.Now()
	first.term()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v to stop, SHUTDOWN_GRACE is 10s", took)
	}
	if n := s.service.Journal.Count(); n == len(orders) {
		t.Fatal("everything was done before the end: this shows nothing")
	}
	for _, e := range s.service.Journal.Entries() {
		if e.Status != 200 {
			t.Errorf("POST of %s was cut off", e.Key)
		}
	}
	s.start(settings)
	s.answered(orders...)
	s.settled()
	s.once(orders...)
	s.noLetters()
}

// Catches: a POST cut off by the end taken for failed, released as if it had not begun, or left to the lease; an exit later than the grace or with an
// error.
func TestTermWithALongPOST(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action { return testkit.Action{Hang: r.Number == 1} })
	settings := env{"FORWARD_TIMEOUT": "5s", "SHUTDOWN_GRACE": "2s", "RETRY_BACKOFF": "100ms"}
	first := s.start(settings)
	s.publish("a")
	s.begun("a", 1)
	began := time.Now()
	first.term()
	if took := time.Since(began); took > 5*time.Second { // with the race detector a process takes a second more to end
		t.Errorf("it took %v to stop, SHUTDOWN_GRACE is 2s", took)
	}
	first.waitLog("the outcome of a request is unknown: the service may have done the work", "id", "a")
	s.start(settings)
	s.answered("a")
	s.settled()
	posts := s.posts("a", 2)
	s.repeated(posts[0], posts[1])
	s.noLetters()
}

// Catches: the usual end of a pod, where the service goes first: messages counted or dead-lettered for it, or an exit that waits for the service.
func TestTermAfterTheService(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	settings := env{"RETRY_MAX_ATTEMPTS": "1"}
	first := s.start(settings)
	s.publish("warm")
	s.answered("warm")
	s.emptied()
	s.must(s.service.Shutdown(s.ctx))
	orders := ids("order", 50)
	s.publish(orders...)
	first.waitMissing("service")
	first.term()
	s.must(s.service.Start())
	s.start(settings)
	s.answered(orders...)
	s.settled()
	s.once(append(orders, "warm")...)
	s.noLetters()
}

// Catches: deliveries given back while the consumer still takes some: the broker hands them out to it again, and a
// drain costs a message two of the few returns that a quorum queue allows it; a drain that loses its session, so that
// the POST under way cannot be acked.
func TestADrainCostsOneReturn(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Wait: answer} })
	// With a longer timeout the prefetch would be lowered.
	replica := s.start(env{"PREFETCH": "100", "FORWARD_CONCURRENCY": "1", "FORWARD_TIMEOUT": "9s"})
	s.publish(ids("order", 100)...)
	s.underWay(1)
	replica.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 99)
	s.must(replica.Term())
	replica.waitLog("draining")
	close(answer)
	code, err := replica.Wait(s.ctx)
	s.must(err)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	back, err := s.client.Take(s.ctx, s.queue, 99)
	s.must(err)
	for _, d := range back {
		if n, _ := d.Headers["x-delivery-count"].(int64); n > 1 {
			t.Errorf("%s came back %d times", d.MessageId, n)
		}
	}
	if ready, _, err := s.client.Depth(s.queue); err != nil || ready != 0 {
		t.Errorf("%d messages more than the 99 that waited, %v: the one in the POST was not acked", ready, err)
	}
}
