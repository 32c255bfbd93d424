package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// braked is what the tests read of a braked queue's part of GET /status.
type braked struct {
	Missing []string
	Queues  []struct {
		Brake *brake
		Hint  string
	}
}

type brake struct {
	Since, Next time.Time
	InARow      int `json:"in_a_row"`
	Last, Hint  string
}

func (r *replica) brake() *brake {
	r.stand.t.Helper()
	return r.braked().Queues[0].Brake
}

func (r *replica) braked() (all braked) {
	r.stand.t.Helper()
	r.stand.must(r.Status(r.stand.ctx, &all))
	return all
}

// waitBrake waits until so many in a row did not end done, and the replica brakes.
func (r *replica) waitBrake(inARow int) *brake {
	r.stand.t.Helper()
	var last *brake
	r.stand.eventually(fmt.Sprintf("it brakes after %d", inARow), func() (bool, error) {
		var all braked
		if err := r.Status(r.stand.ctx, &all); err != nil {
			return false, err
		}
		last = all.Queues[0].Brake
		return last != nil && last.InARow >= inARow, fmt.Errorf("brake: %+v", last)
	})
	return last
}

// brakedEnv sets what the tests of the brake share: the default, after which messages in a row it brakes.
func brakedEnv() env { return env{"FORWARD_BRAKE_AFTER": "", "LOG_LEVEL": "info"} }

// earlyMost is how many messages may fail before the brake: three, and what is under way beside the third.
const earlyMost = 3 + 3

// backlog is what waits in the queue.
const backlog = 10_000

// wrongSetting is a case of a setting, or a service, that no message gets through.
type wrongSetting struct {
	settings   env
	behaviour  testkit.Behaviour
	change     func(i int, p *amqp.Publishing) // of each message
	last, hint string
	lettersAt  int // dead letters for each failure; 0 while attempts are left
	first      int // messages that end done before
	restart    env // heals it; nil when the service is mended instead
}

func wrongSettings() map[string]wrongSetting {
	notFound := func(r testkit.Received) testkit.Action {
		if r.Path != "/work" {
			return testkit.Action{Status: http.StatusNotFound}
		}
		return testkit.Action{}
	}
	return map[string]wrongSetting{
		"wrong path": {
			settings: env{"FORWARD_URL": "{url}/wrok"}, behaviour: notFound, last: "fail (status 404)", hint: "FORWARD_URL",
		},
		"rejects everything": {
			behaviour: func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusBadRequest} },
			last:      "reject (status 400)", hint: "the service refuses the messages", lettersAt: 1,
		},
		"no ID there": {
			settings: env{"DEDUP_ID_FROM": "header:order-id"}, last: "missing-id", hint: "DEDUP_ID_FROM", lettersAt: 1,
			restart: env{"DEDUP_ID_FROM": "message-id"},
		},
		"one ID for all": {
			settings: env{"DEDUP_ID_FROM": "header:tenant"}, last: "conflict", hint: "DEDUP_ID_FROM", lettersAt: 1, first: 1,
			change:  func(_ int, p *amqp.Publishing) { p.Headers = amqp.Table{"tenant": "shop"} },
			restart: env{"DEDUP_ID_FROM": "message-id"},
		},
	}
}

// Catches: a wrong setting that empties a queue into the dead letters: no brake, one that comes late, one whose pauses do not grow, one that does not
// say why; a brake that stays when all is well again; messages lost or sent twice by it.
func TestBrake(t *testing.T) {
	t.Parallel()
	for name, c := range wrongSettings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, c.behaviour)
			if url, ok := c.settings["FORWARD_URL"]; ok {
				c.settings["FORWARD_URL"] = strings.ReplaceAll(url, "{url}", s.service.URL)
			}
			s.fill(c)
			r := s.start(brakedEnv(), c.settings)
			b := r.waitBrake(3)
			r.saysWhy(b, c)
			failed := s.slows(r, b, c)
			s.must(s.client.Purge(s.queue)) // what is left would only take time: what the replica holds stays
			s.heals(r, c, failed)
		})
	}
}

// fill publishes the backlog.
func (s *stand) fill(c wrongSetting) {
	s.t.Helper()
	var all []amqp.Publishing
	for i, id := range ids("old", backlog) {
		p := message(id)
		if c.change != nil {
			c.change(i, &p)
		}
		all = append(all, p)
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, all...))
}

// saysWhy wants that status, log and metric name the cause and the setting.
func (r *replica) saysWhy(b *brake, c wrongSetting) {
	s := r.stand
	s.t.Helper()
	if b.Last != c.last || !strings.Contains(b.Hint, c.hint) || b.InARow > earlyMost {
		s.t.Errorf("brake: %+v", *b)
	}
	if text := strings.Join(r.braked().Missing, "\n"); !strings.Contains(text, c.last) || !strings.Contains(text, c.hint) {
		s.t.Errorf("missing: %s", text)
	}
	line, err := r.Logs.Wait(s.ctx, func(l testkit.LogLine) bool {
		return strings.HasPrefix(l.Message(), "messages in a row did not end done")
	})
	s.must(err)
	hint, _ := line.Fields["hint"].(string)
	if line.Fields["level"] != "WARN" || line.Fields["last"] != c.last || !strings.Contains(hint, c.hint) {
		s.t.Errorf("log: %s", line.Text)
	}
	r.waitMetric(`rabbitonce_queue_paused{queue="{queue}",why="brake"}`, 1)
}

// slows watches the brake over its first pause, which is about 15 seconds, and the announcement of the second, twice as long: from then on it doubles
// up to five minutes, so that there are fewer than ten failures in ten minutes. It returns how many there were.
func (s *stand) slows(r *replica, first *brake, c wrongSetting) (failed int) {
	s.t.Helper()
	failed = first.InARow
	then := r.waitBrake(failed + 1)
	for time.Since(first.Since) < 5*time.Second && then.InARow <= earlyMost { // it was under way beside the third
		failed = then.InARow
		then = r.waitBrake(failed + 1)
	}
	if pause := time.Since(first.Since); pause < 11*time.Second {
		s.t.Errorf("the next one was tried after %v", pause)
	}
	if then.InARow != failed+1 {
		s.t.Errorf("%d in a row after %d: more than one at a time", then.InARow, failed)
	}
	if pause := time.Until(then.Next); pause < 20*time.Second {
		s.t.Errorf("the one after that is tried in %v: the pauses do not grow", pause)
	}
	failed = then.InARow
	letters, _, err := s.client.Depth(s.dead)
	s.must(err)
	if want := c.lettersAt * failed; letters > want {
		s.t.Errorf("%d dead letters, want no more than %d", letters, want)
	}
	return failed
}

// heals mends what was wrong, and wants each message that is left to be done once.
func (s *stand) heals(r *replica, c wrongSetting, failed int) {
	s.t.Helper()
	if c.restart != nil {
		r.term()
		r = s.start(brakedEnv(), c.restart)
	} else {
		s.service.Behave(nil)
	}
	fresh := ids("new", 200)
	s.publish(fresh...)
	s.answered(fresh...)
	r.waitConsuming() // which it says only when it does not brake
	if c.restart == nil {
		r.waitLog("a message ended done: going on as usual")
	}
	s.eventually("the metric says that it does not brake", func() (bool, error) {
		samples, err := r.Metrics(s.ctx)
		value, known := samples[`rabbitonce_queue_paused{queue="`+s.queue+`",why="brake"}`]
		return known && value == 0, err
	})
	if r.brake() != nil {
		s.t.Error("the status says that it brakes")
	}
	s.settled()
	letters, err := s.client.Drain(s.dead)
	s.must(err)
	if len(letters) != c.lettersAt*failed {
		s.t.Errorf("%d dead letters of %d failures", len(letters), failed)
	}
	done := map[string]int{}
	for _, e := range s.service.Journal.Entries() {
		if e.Status/100 == 2 {
			done[e.Header.Get("RabbitMQ-Message-Id")]++
		}
	}
	for _, id := range fresh {
		if done[id] != 1 {
			s.t.Errorf("%s was done %d times", id, done[id])
		}
	}
	for id, n := range done {
		if n != 1 || slices.ContainsFunc(letters, func(l amqp.Delivery) bool { return l.MessageId == id }) {
			s.t.Errorf("%s was done %d times", id, n)
		}
	}
	if len(done) <= len(fresh)+c.first {
		s.t.Error("nothing of the backlog was done")
	}
}
