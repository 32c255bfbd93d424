package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// A letter that cannot be published keeps nobody from working.
func TestLetterHoldsNoSlot(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "FORWARD_CONCURRENCY=1") // there is no broker to publish to
	b.deliver(1, "", "no ID")
	waitUntil(t, func() bool { return !b.queue.letters.status().Up })
	b.deliver(2, "good", "200")
	if got := b.settled(t, 1)[2]; got != "ack" {
		t.Errorf("settled by %q", got)
	}
	b.drain(errDraining)
}

// Failures of requests that were under way when the brake began make its pause no longer.
func TestBrakeOfManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(50, 20)
		defer th.stop()
		th.succeeded()
		for range 50 {
			_ = th.take(t.Context(), time.Now())
		}
		for range 50 {
			th.failed(setback{outcome: forward.Fail, status: 500})
			th.give()
		}
		brake, streak := th.state()
		if pause := time.Until(brake.until); pause > 2*brakeFirst || streak != 50 {
			t.Errorf("a pause of %v after %d failures", pause, streak)
		}
	})
}

// While the brake is on nobody waits until the broker takes the delivery back.
func TestBrakeLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(4, 1)
		defer th.stop()
		th.succeeded()
		went := make(chan time.Duration, 16)
		began := time.Now()
		for range 16 {
			go func() {
				for th.take(t.Context(), time.Now()) == nil {
					th.failed(setback{outcome: forward.Fail, status: 404})
					th.give()
					if time.Since(began) > 2*time.Hour { // a queue that nobody mends, long enough
						break
					}
				}
				went <- time.Since(began)
			}()
		}
		let := 0
		for range 16 {
			if waited := <-went; waited < longestHold+time.Minute {
				let++
			}
		}
		if let < 10 {
			t.Errorf("%d of 16 were let go within %v", let, longestHold)
		}
	})
}

// Who got a slot before the brake, and waits for a turn, has to look again.
func TestBrakeHoldsBackWhoHasASlot(t *testing.T) {
	th := newThrottle(4, 1)
	defer th.stop()
	th.succeeded()
	if _ = th.take(t.Context(), time.Now()); th.holdsBack() {
		t.Error("held back without a brake")
	}
	th.failed(setback{outcome: forward.Fail, status: 500})
	if !th.holdsBack() {
		t.Error("goes on in the pause")
	}
}

// FORWARD_RATE is about requests: a copy that is only acknowledged takes none of it.
func TestRateIsOfRequests(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "FORWARD_RATE=1")
	b.deliver(1, "m", "200")
	b.settled(t, 1)
	began := time.Now()
	for tag := range uint64(20) {
		b.deliver(2+tag, "m", "200")
	}
	b.settled(t, 20)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("20 copies took %v", took)
	}
}

// A lookup that takes long does not keep the turn that other messages wait for.
func TestRateGoesOnDuringALookup(t *testing.T) {
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	answered := sync.OnceFunc(func() { close(answer) })
	defer answered()
	j := &journal{}
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			j.ServeHTTP(w, r)
			return
		case strings.HasPrefix(r.URL.Path, "/of/m"):
			asked <- struct{}{}
			<-answer
		}
		w.WriteHeader(http.StatusNotFound)
	}), "FORWARD_RATE=100", "FORWARD_ON_UNKNOWN=lookup", "FORWARD_TIMEOUT=200ms", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
	b.deliver(1, "m", "502 200")
	<-asked
	b.deliver(2, "other", "200")
	if got := b.settled(t, 1)[2]; got != "ack" {
		t.Errorf("settled by %q while the service is asked about another message", got)
	}
	answered()
	if got := b.settled(t, 1)[1]; got != "ack" {
		t.Errorf("settled by %q", got)
	}
}

// Without a claim nothing is recorded that a lookup could clear up: the message must not be sent for ever.
func TestUnclaimedUnderLookupEnds(t *testing.T) {
	var posts atomic.Int32
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}), "DEDUP_ON_MISSING_ID=forward", "FORWARD_ON_UNKNOWN=lookup", "FORWARD_TIMEOUT=20ms", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
	b.deliver(1, "", "x")
	waitUntil(t, func() bool { return !b.queue.letters.status().Up }) // there is no broker to publish to
	if n := posts.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	b.drain(errDraining)
}

// The store's gate closes while the service is asked: the claim under which it was asked must not live on.
func TestLookupLeavesNoClaimBehind(t *testing.T) {
	statuses := []int{http.StatusBadGateway, http.StatusInternalServerError, http.StatusOK}
	var posts atomic.Int32
	var b *bench
	b = newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(statuses[min(int(posts.Add(1)), len(statuses))-1])
			return
		case strings.HasPrefix(r.URL.Path, "/of/m"):
			b.queue.storeGate.close(errors.New("another delivery's claim timed out"))
		}
		w.WriteHeader(http.StatusNotFound)
	}), "DEDUP_ON_STORE_DOWN=forward", "FORWARD_ON_UNKNOWN=lookup", "FORWARD_TIMEOUT=200ms", "RETRY_MAX_ATTEMPTS=10", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
	b.deliver(1, "m", "x")
	if got := b.settled(t, 1)[1]; got != "ack" || posts.Load() != 3 {
		t.Errorf("settled by %q after %d requests", got, posts.Load())
	}
}

// A lookup that was cut off says nothing of the message.
func TestLookupCutOffIsNoAnswer(t *testing.T) {
	asked := make(chan struct{}, 100)
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusBadGateway)
		case strings.HasPrefix(r.URL.Path, "/of/m"):
			asked <- struct{}{}
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}), "FORWARD_ON_UNKNOWN=lookup", "FORWARD_TIMEOUT=200ms", "RETRY_MAX_AGE=1s", "FORWARD_LOOKUP_URL=http://SERVICE/of/{id}")
	b.deliver(1, "m", "x")
	<-asked
	b.drain(errDraining)
	b.abort(errGraceOver)
	b.settled(t, 1)
	if rec := b.record(t, "m"); rec.State == dedup.StateDead || !rec.EverUnknown {
		t.Errorf("the record is %v, ever unknown %t", rec.State, rec.EverUnknown)
	}
}

// A request that cannot be made is known by its advice, and counts as a letter without a request.
func TestNoRequestAdvice(t *testing.T) {
	b := newBench(t, &journal{}, "FORWARD_BODY=json:/message", "FORWARD_BRAKE_AFTER=20")
	b.queue.throttle.succeeded()
	for tag := range uint64(3) {
		b.deliver(tag+1, fmt.Sprint("m", tag), `{"data":1}`)
	}
	waitUntil(t, func() bool { return b.queue.brakeStatus() != nil })
	if hint := b.queue.brakeStatus().Hint; !strings.Contains(hint, "FORWARD_BODY") {
		t.Errorf("hint: %s", hint)
	}
	b.drain(errDraining)
}

// A restart of a service that worked cuts off what was under way: one setback, however many requests that were. What begins
// after it counts by itself, however quickly it ends: a service that only closes connections is no restart.
func TestRequestsCutOffTogetherCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(32, 20)
		defer th.stop()
		th.succeeded()
		cut := setback{outcome: forward.Unknown, began: time.Now()}
		time.Sleep(time.Second)
		for range 32 {
			th.failed(cut)
		}
		if brake, streak := th.state(); brake != nil || streak != 1 {
			t.Errorf("brake %v after %d", brake, streak)
		}
		for range 19 {
			th.failed(setback{outcome: forward.Unknown, began: time.Now()})
		}
		if brake, _ := th.state(); brake == nil {
			t.Error("no brake for a service that answers nothing")
		}
		th.succeeded()
		if th.failed(setback{outcome: forward.Unknown, began: time.Now()}); th.streak != 1 {
			t.Errorf("%d in a row after a success", th.streak)
		}
	})
}

// A service that says when it is ready for more paces itself.
func TestBusyIsNoSetback(t *testing.T) {
	for name, c := range map[string]struct {
		res  forward.Result
		want int
	}{
		"429":             {forward.Result{Outcome: forward.Defer, Status: 429}, 0},
		"503":             {forward.Result{Outcome: forward.Defer, Status: 503}, 0},
		"409, later":      {forward.Result{Outcome: forward.Defer, Status: 409, RetryAfter: time.Second}, 0},
		"409":             {forward.Result{Outcome: forward.Defer, Status: 409}, 1},
		"503 that fails":  {forward.Result{Outcome: forward.Fail, Status: 503}, 1},
		"no answer":       {forward.Result{Outcome: forward.Unknown}, 1},
		"not reached":     {forward.Result{Outcome: forward.Unreachable}, 0},
		"done, as it was": {forward.Result{Outcome: forward.Done, Status: 200}, 0},
	} {
		b := newBench(t, &journal{}, "FORWARD_BRAKE_AFTER=20")
		b.queue.noteOutcome(c.res, time.Now())
		if _, streak := b.queue.throttle.state(); streak != c.want {
			t.Errorf("%s: %d setbacks, want %d", name, streak, c.want)
		}
	}
}
