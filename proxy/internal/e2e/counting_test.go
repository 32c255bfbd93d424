package e2e

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a shutdown that gives a message back whatever the broker's count says: on the way from one replica to the next it would be dropped.
func TestCountingRollingRestarts(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	s := newStand(t, later(&ready))
	s.byPolicy(lowLimit)
	outstanding := ids("order", 6)
	s.publish(outstanding...)
	s.roll(20, env{"RETRY_HOLD": "2s", "RETRY_BACKOFF": "1s", "PREFETCH": roomy}, func(last *replica) { last.term() })
	ready.Store(true)
	s.answered(outstanding...)
	s.settled()
	s.numbered(outstanding...)
	s.nothingDropped()
}

// Catches: the same when the store is away at each shutdown: no record is needed to keep a message from the limit. What the service had just answered may be lost then,
// so that the next request is flagged.
func TestCountingRollingRestartsWithoutAStore(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	s := newStand(t, later(&ready))
	s.byArgument(lowLimit)
	l := s.newLegs()
	outstanding := ids("order", 6)
	s.publish(outstanding...)
	settings := env{
		"REDIS_URL": l.env["REDIS_URL"], "RETRY_HOLD": "2s", "RETRY_BACKOFF": "1s", "PREFETCH": roomy, "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s",
		"RETRY_MAX_ATTEMPTS": "100", "FORWARD_UNKNOWN_MAX": "100",
	}
	s.roll(8, settings, func(last *replica) {
		l.store.Refuse()
		l.store.Cut()
		last.term()
		s.must(l.store.Reopen())
	})
	ready.Store(true)
	s.answered(outstanding...)
	s.settled()
	s.onceEach(outstanding...)
	s.nothingDropped()
}

// Catches: a pause that gives messages back whatever the broker's count says; messages that come back to a paused replica at once, again and again.
func TestCountingPauses(t *testing.T) {
	t.Parallel()
	const pauses = 8
	var ready atomic.Bool
	s := newStand(t, later(&ready))
	s.byArgument(lowLimit)
	outstanding := ids("order", 10)
	s.publish(outstanding...)
	r := s.start(env{
		"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "100ms", "PREFETCH": roomy, "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s", "RETRY_MAX_ATTEMPTS": "100", "FORWARD_UNKNOWN_MAX": "100",
	})
	for range pauses {
		r.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 1)
		s.must(s.service.Shutdown(s.ctx))
		r.waitMissing("paused")
		s.must(s.service.Start())
		r.waitConsuming()
	}
	ready.Store(true)
	s.answered(outstanding...)
	samples, err := r.Metrics(s.ctx)
	s.must(err)
	outcomes := []string{"returned", "parked"} // those parked include the ones whose pause was long
	if !s.countsReturns() {
		outcomes = outcomes[:1]
	}
	for _, outcome := range outcomes {
		n := samples[fmt.Sprintf("rabbitonce_deliveries_total{outcome=%q,queue=%q}", outcome, s.queue)]
		if most := float64(3 * pauses * len(outstanding)); n < 1 || n > most {
			t.Errorf("%v deliveries were %s in %d pauses, want 1 to %v", n, outcome, pauses, most)
		}
	}
	s.settled()
	s.onceEach(outstanding...) // one that was on its way when the service left is of unknown outcome
	s.nothingDropped()
}

// Catches: copies of a message that another replica holds given back to be asked for again, or given back by each restart until the broker drops them.
func TestCountingBusyCopies(t *testing.T) {
	t.Parallel()
	const copies = 4
	answer := make(chan struct{})
	var answered sync.Once
	free := func() { answered.Do(func() { close(answer) }) }
	defer free()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Wait: answer} })
	s.byArgument(lowLimit)
	s.start(env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1"})
	s.publish("a")
	s.begun("a", 1)
	for range copies {
		s.publish("a")
	}
	for range 7 { // each leaves while they wait here
		other := s.start(env{"RETRY_HOLD": "1m", "RETRY_BACKOFF": "1s"})
		other.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 1)
		other.term()
	}
	other := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s"})
	other.waitMetric(`rabbitonce_deliveries_total{outcome="parked",queue="{queue}"}`, 2*copies)
	other.term()
	free()
	s.answered("a")
	s.eventually("the wait queues are empty", func() (bool, error) {
		for _, step := range []string{"1s", "30s"} {
			if there, err := s.client.Exists(s.queue + ".wait." + step); err != nil || !there {
				continue
			}
			if n, _, err := s.client.Depth(s.queue + ".wait." + step); err != nil || n > 0 {
				return false, err
			}
		}
		return true, nil
	})
	s.settled()
	s.once("a")
	s.nothingDropped()
}

// counters are headers of the broker's own names in all shapes that a publisher, or a queue that dead-lettered the message before, can give them, with what the service
// sees of them.
func counters() map[string]struct {
	headers amqp.Table
	sees    map[string]string
} {
	return map[string]struct {
		headers amqp.Table
		sees    map[string]string
	}{
		"missing":      {nil, map[string]string{"x-delivery-count": "", "x-death": ""}},
		"long":         {amqp.Table{"x-delivery-count": int64(4), "x-acquired-count": int64(9)}, map[string]string{"x-delivery-count": "4", "x-acquired-count": "9"}},
		"int":          {amqp.Table{"x-delivery-count": int32(3)}, map[string]string{"x-delivery-count": "3"}},
		"huge":         {amqp.Table{"x-delivery-count": int64(1_000_000_000), "x-acquired-count": int64(1_000_000_000)}, map[string]string{"x-delivery-count": "1000000000"}},
		"negative":     {amqp.Table{"x-delivery-count": int64(-1_000_000_000)}, map[string]string{"x-delivery-count": "-1000000000"}},
		"text":         {amqp.Table{"x-delivery-count": "very many", "x-death": "often"}, map[string]string{"x-delivery-count": "very many", "x-death": "often"}},
		"truth":        {amqp.Table{"x-delivery-count": true, "x-acquired-count": nil}, map[string]string{"x-delivery-count": "true"}},
		"list":         {amqp.Table{"x-delivery-count": []any{int32(1), amqp.Table{"n": int32(2)}}}, map[string]string{"x-delivery-count": `[1,{"n":2}]`}},
		"death":        {amqp.Table{"x-death": []any{amqp.Table{"count": int64(99), "queue": "elsewhere", "reason": "rejected"}}}, map[string]string{"x-death": `[{"count":99,"queue":"elsewhere","reason":"rejected"}]`}},
		"death, table": {amqp.Table{"x-death": amqp.Table{"count": "99"}, "x-first-death-queue": int32(1)}, map[string]string{"x-death": `{"count":"99"}`, "x-first-death-queue": "1"}},
		"death, bytes": {amqp.Table{"x-death": []any{"garbage", []byte{0, 0xff}, nil}}, nil},
	}
}

// Catches: an attempt number taken from the broker's headers, a message parked or dead-lettered for what they say, a shape of them that stops the process, or
// that is not passed on.
func TestCountingTrustsNoHeader(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"quorum", "classic"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var ready atomic.Bool
			s := newStand(t, later(&ready))
			if kind == "quorum" {
				s.byArgument(lowLimit)
			} else {
				s.move()
				s.must(s.client.DeclareClassic(s.queue, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.watch()}))
			}
			var all []string
			for name, c := range counters() {
				m := message(name)
				m.Headers = c.headers
				s.must(s.client.PublishTo(s.ctx, s.queue, m))
				all = append(all, name)
			}
			slices.Sort(all)
			settings := env{"RETRY_HOLD": "2s", "RETRY_BACKOFF": "1s", "PREFETCH": roomy}
			r := s.start(settings)
			for _, name := range all {
				s.begun(name, 1)
			}
			samples, err := r.Metrics(s.ctx)
			s.must(err)
			if n := samples[fmt.Sprintf(`rabbitonce_deliveries_total{outcome="parked",queue=%q}`, s.queue)]; n != 0 {
				t.Errorf("%v messages went to a wait queue for a header of theirs", n)
			}
			for range 3 { // each gives back what it has
				r.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 1)
				r.term()
				r = s.start(settings)
			}
			ready.Store(true)
			s.answered(all...)
			s.settled()
			s.numbered(all...)
			s.nothingDropped()
			for _, name := range all {
				first := s.service.Journal.ByKey(name)[0]
				for header, want := range counters()[name].sees {
					if got := first.Header.Get("RabbitMQ-Header-" + header); got != want {
						t.Errorf("%s: the service sees %s %q, want %q", name, header, got, want)
					}
				}
			}
		})
	}
}

// Catches: a POST cut off at the end of SHUTDOWN_GRACE whose message goes back whatever the broker's count says: nothing but its outcome is out of our hands.
func TestCountingCutOffPOSTs(t *testing.T) {
	t.Parallel()
	const cuts = 5
	s := newStand(t, func(r testkit.Received) testkit.Action {
		return testkit.Action{Hang: r.Number <= cuts}
	})
	s.byArgument(cuts - 2)
	settings := env{
		"SHUTDOWN_GRACE": "1s", "FORWARD_TIMEOUT": "2s", "DEDUP_LEASE": "2s", "RETRY_BACKOFF": "100ms", "FORWARD_UNKNOWN_MAX": "100", "RETRY_MAX_ATTEMPTS": "100",
	}
	s.publish("a")
	for i := range cuts {
		r := s.start(settings)
		s.begun("a", i+1)
		r.term()
	}
	s.start(settings)
	s.answered("a")
	s.settled()
	s.onceUnlessUnknown("a")
	s.nothingDropped()
}

// Catches: messages POSTed, or handed out and back, in a loop while the service cannot be reached: each goes back once.
func TestCountingServiceAway(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.byArgument(lowLimit)
	r := s.start(env{"RETRY_HOLD": "200ms", "PREFETCH": "100"})
	s.publish("first")
	s.answered("first")
	s.must(s.service.Shutdown(s.ctx))
	orders := ids("order", 100)
	s.publish(orders...)
	r.waitMissing("paused")
	s.outage(2 * time.Second)
	if n := s.service.Journal.Count(); n != 1 {
		t.Errorf("%d POSTs, want 1: the service is away", n)
	}
	waiting, err := s.client.Take(s.ctx, s.queue, len(orders))
	s.must(err)
	for _, d := range waiting {
		if n, _ := d.Headers["x-delivery-count"].(int64); n > 1 {
			t.Errorf("%s was handed out and back %d times", d.MessageId, n)
		}
	}
	s.nothingDropped()
}
