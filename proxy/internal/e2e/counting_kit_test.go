package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

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
