package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// unreached is how many requests ended unreachable.
func (r *replica) unreached() float64 {
	r.stand.t.Helper()
	samples, err := r.Metrics(r.stand.ctx)
	r.stand.must(err)
	return samples[`rabbitonce_request_seconds_count{outcome="unreachable",queue="`+r.stand.queue+`"}`]
}

// Catches: a backlog that is tried, message by message, against a service that is gone; deliveries kept from a replica whose service is there; a
// replica that does not take its part again when its service is back.
func TestOtherReplicasTakeOver(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	other, err := testkit.StartService(nil)
	s.must(err)
	t.Cleanup(func() { s.closed(other.Close()) })
	settings := env{"RETRY_HOLD": "1s", "RETRY_MAX_ATTEMPTS": "1", "FORWARD_CONCURRENCY": "1", "PREFETCH": "50"}
	lonely := s.start(settings)
	lonely.waitConsuming()
	s.service.Stop()
	all := ids("order", 50)
	s.publish(all...)
	lonely.waitMissing("service")
	s.start(settings, env{"FORWARD_URL": other.URL + "/work"}).waitConsuming()
	s.must(other.Journal.WaitAnswered(s.ctx, len(all)))
	s.emptied()
	// The consumer is asked for the service every two seconds, and no message is tried for that.
	s.outage(3 * time.Second)
	if n := lonely.unreached(); n != 1 {
		t.Errorf("%v requests were tried at a service that was gone", n)
	}
	for id, entries := range other.Journal.Keys() {
		if len(entries) != 1 || entries[0].Attempt != "1" || entries[0].Unknown {
			t.Errorf("%d POSTs of %s, the first of attempt %s", len(entries), id, entries[0].Attempt)
		}
	}

	s.must(s.service.Start())
	lonely.waitConsuming()
	more := ids("more", 100)
	s.publish(more...)
	s.must(s.service.Journal.WaitAnswered(s.ctx, 1))
	s.settled()
	if n := s.service.Journal.Count() + other.Journal.Count(); n != len(all)+len(more) {
		t.Errorf("%d POSTs of %d messages", n, len(all)+len(more))
	}
	s.noLetters()
}
