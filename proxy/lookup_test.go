package proxy

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/forward"
)

// asked is a service that can be asked: POSTs go to its journal, lookups get one answer after the other.
type asked struct {
	journal
	mu      sync.Mutex
	answers []int // of lookups for messages; the last repeats
	lookups int
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		a.journal.ServeHTTP(w, r)
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/of/m") { // the probe's random ID
		w.WriteHeader(http.StatusNotFound)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.WriteHeader(a.answers[min(a.lookups, len(a.answers)-1)])
	a.lookups++
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lookups
}

// The service's answer decides: done is not sent again, not done is sent without the flag, anything else is asked again.
func TestLookupDecides(t *testing.T) {
	cases := map[string]struct {
		body    string // statuses of the POSTs
		answers []int
		want    []string
		lookups int
		settled string
	}{
		"done":                {"502", []int{200}, []string{"m 1"}, 1, "ack"},
		"not done":            {"502 200", []int{404}, []string{"m 1", "m 2"}, 1, "ack"},
		"asked again":         {"502 200", []int{500, 503, 302, 404}, []string{"m 1", "m 2"}, 4, "ack"},
		"unknown twice":       {"502 504 200", []int{404}, []string{"m 1", "m 2", "m 3"}, 2, "ack"},
		"done after a second": {"502 504", []int{404, 204}, []string{"m 1", "m 2"}, 2, "ack"},
		"fails afterwards":    {"502 500 200", []int{404}, []string{"m 1", "m 2", "m 3"}, 1, "ack"},
		"beyond UNKNOWN_MAX":  {"502 502 502 502 502 200", []int{404}, []string{"m 1", "m 2", "m 3", "m 4", "m 5", "m 6"}, 5, "ack"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &asked{answers: c.answers}
			b := newBench(t, service, "FORWARD_ON_UNKNOWN=lookup", "FORWARD_TIMEOUT=200ms", "RETRY_MAX_ATTEMPTS=10", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
			b.deliver(1, "m", c.body)
			if got := b.settled(t, 1)[1]; got != c.settled {
				t.Errorf("settled by %s", got)
			}
			if diff := cmp.Diff(c.want, service.seen()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if n := service.count(); n != c.lookups {
				t.Errorf("%d lookups, want %d", n, c.lookups)
			}
		})
	}
}

// The pauses between lookups grow on when a message comes back from a wait queue, and what came with it is gone.
func TestLookupsAreCountedOverAWaitQueue(t *testing.T) {
	q := &queue{}
	d := &delivery{MessageId: "m", Headers: amqp.Table{parkedLookups: int64(3), "own": "x"}}
	m, _ := q.identify(arrival{delivery: d})
	if diff := cmp.Diff(amqp.Table{"own": "x"}, m.Headers); m.lookups != 3 || diff != "" {
		t.Errorf("%d lookups, headers (-want +got):\n%s", m.lookups, diff)
	}
	if m, _ = q.identify(arrival{delivery: &delivery{MessageId: "m"}}); m.lookups != 0 {
		t.Errorf("%d lookups of a message that was not asked about", m.lookups)
	}
}

// A service that says done to an ID that no message has is not trusted: nothing is sent.
func TestLookupIsProbed(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		"FORWARD_ON_UNKNOWN=lookup", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
	<-b.queue.serviceGate.asked
	status := b.queue.status()
	if status.Service.Up || !strings.Contains(status.Service.Problem, "FORWARD_LOOKUP_URL") || !strings.Contains(status.Service.Problem, "404") {
		t.Errorf("service: %+v", status.Service)
	}
}

// What was reached again, or at first, is not hit by all at once.
func TestRampBeginsWithTheService(t *testing.T) {
	b := newBench(t, &journal{}, "FORWARD_CONCURRENCY=8")
	th := b.queue.throttle
	for range 2 {
		if err := b.queue.serviceGate.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := free(th); n != 1 {
			t.Errorf("%d slots once the service is there, want 1", n)
		}
		th.mu.Lock()
		th.began = th.began.Add(-time.Minute)
		th.mu.Unlock()
		if n := free(th); n != 8 {
			t.Errorf("%d slots a minute later, want 8", n)
		}
		b.queue.serviceGate.close(errors.New("gone"))
	}
}

// Three failures before the first success, then one at a time with pauses: status, hint and metric say so.
func TestBrake(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "FORWARD_BRAKE_AFTER=20", "FORWARD_CONCURRENCY=1")
	for tag := range uint64(10) {
		b.deliver(tag+1, "m"+string(rune('0'+tag)), "404 200")
	}
	for b.queue.brakeStatus() == nil {
		select {
		case <-t.Context().Done():
			t.Fatal("it does not brake")
		default:
		}
	}
	status := b.queue.status()
	if status.Brake.InARow != 3 || status.Brake.Last != "fail (status 404)" || !strings.Contains(status.Brake.Hint, "FORWARD_URL") {
		t.Errorf("%+v", status.Brake)
	}
	if n := len(j.seen()); n != 3 {
		t.Errorf("%d requests", n)
	}
	b.drain(errDraining)
	b.settled(t, 10)
}

// Three answers 409 in a row, and only in a row, make a hint that goes with the next success.
func TestConflictHint(t *testing.T) {
	b := newBench(t, &journal{})
	answer := func(outcome forward.Outcome, status int) string {
		b.queue.noteOutcome(forward.Result{Outcome: outcome, Status: status}, time.Now())
		return b.queue.status().Hint
	}
	for _, status := range []int{409, 409, 503, 409, 409} {
		if hint := answer(forward.Defer, status); hint != "" {
			t.Errorf("after %d: %s", status, hint)
		}
	}
	answer(forward.Unreachable, 0) // tells nothing of the service's answers
	if hint := answer(forward.Defer, 409); !strings.Contains(hint, "FORWARD_STATUS_DONE=200-299,409") {
		t.Errorf("hint: %q", hint)
	}
	b.queue.wellDone()
	if hint := b.queue.status().Hint; hint != "" {
		t.Errorf("after a success: %s", hint)
	}
}
