package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// The tests of this file give the queue a delivery limit that is far below what happens to its messages, and a dead-letter exchange to a queue that
// is watched: what the broker drops would be seen there.

// lowLimit is the delivery limit of a quorum queue here; the default of RabbitMQ 4 is 20.
const lowLimit = 5

// roomy is a PREFETCH of which the messages of a test take up less than half, so that none has to make room for others and leaves by that way.
const roomy = "40"

// byArgument and byPolicy are the two ways to set a limit, on a queue that the stand takes from now on. A client cannot see the second.
func (s *stand) byArgument(limit int) {
	s.t.Helper()
	s.move()
	s.must(s.client.DeclareQuorum(s.queue, amqp.Table{
		"x-delivery-limit": int32(limit), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.watch(),
	}))
}

func (s *stand) byPolicy(limit int) {
	s.t.Helper()
	s.move()
	s.setPolicy(s.queue, map[string]any{"delivery-limit": limit, "dead-letter-exchange": "", "dead-letter-routing-key": s.watch()})
	s.declare(s.queue)
}

// move gives the stand another queue, not declared yet, with its dead letters.
func (s *stand) move() {
	s.t.Helper()
	s.queue += ".limited"
	s.dead = s.queue + ".dead"
	s.declare(s.dead)
}

// watch declares the queue that gets what the broker drops, and makes the way through a wait queue short.
func (s *stand) watch() string {
	s.t.Helper()
	watched := s.queue + ".dropped"
	s.declare(watched)
	s.setPolicy(s.queue+".wait.30s", map[string]any{"message-ttl": 1000}) // of argument and policy the lower holds
	return watched
}

// nothingDropped wants no message in the watched queue, and no dead letter of ours.
func (s *stand) nothingDropped() {
	s.t.Helper()
	dropped, err := s.client.Drain(s.queue + ".dropped")
	s.must(err)
	for _, d := range dropped {
		s.t.Errorf("the broker dropped %s: %v", d.MessageId, d.Headers["x-death"])
	}
	s.noLetters()
}

// setPolicy sets a policy on one queue of the stand, for as long as the test runs.
func (s *stand) setPolicy(queue string, definition map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(definition)
	s.must(err)
	s.ctl("set_policy", queue, "^"+queue+"$", string(text), "--apply-to", "queues")
}

// later answers 503 and asks to come back in a second, until ready: a message is never done and never failed.
func later(ready *atomic.Bool) testkit.Behaviour {
	return func(testkit.Received) testkit.Action {
		if ready.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}
	}
}

// numbered wants the attempts of each ID to be numbered from 1 without a gap, none of unknown outcome, and the last one alone to have succeeded.
func (s *stand) numbered(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		entries := s.service.Journal.ByKey(id)
		for i, e := range entries {
			if e.Attempt != strconv.Itoa(i+1) || e.Unknown || (e.Status == http.StatusOK) != (i == len(entries)-1) {
				s.t.Errorf("POST %d of %d of %s says attempt %s, unknown %t, and was answered %d", i+1, len(entries), id, e.Attempt, e.Unknown, e.Status)
			}
		}
		if len(entries) == 0 {
			s.t.Errorf("no POST of %s", id)
		}
	}
}

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

// roll starts one replica after another; each is ended when the next one runs, and the next goes on with what came back. The last one is left running.
func (s *stand) roll(n int, settings env, end func(last *replica)) {
	s.t.Helper()
	last := s.start(settings)
	for range n - 1 {
		last.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 1)
		next := s.start(settings)
		s.must(next.WaitFor(s.ctx, "/livez", func(status int, _ []byte) bool { return status == http.StatusOK }))
		end(last)
		last = next
	}
}

// onceEach wants one success of each ID, the last of its POSTs, and attempts that are counted upwards whatever happened in between.
func (s *stand) onceEach(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		entries := s.service.Journal.ByKey(id)
		last := 0
		for i, e := range entries {
			n, err := strconv.Atoi(e.Attempt)
			if err != nil || n <= last || (e.Status/100 == 2) != (i == len(entries)-1) {
				s.t.Errorf("POST %d of %d of %s says attempt %s after %d, and was answered %d", i+1, len(entries), id, e.Attempt, last, e.Status)
			}
			last = n
		}
		if last == 0 {
			s.t.Errorf("no POST of %s", id)
		}
	}
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

// countsReturns tells whether a quorum queue of the broker counts what is returned in good order: up to 4.2.
func (s *stand) countsReturns() bool {
	s.t.Helper()
	version, err := s.broker.Version()
	s.must(err)
	var major, minor int
	_, err = fmt.Sscanf(version, "RabbitMQ %d.%d", &major, &minor)
	s.must(err)
	return major < 4 || major == 4 && minor < 3
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
