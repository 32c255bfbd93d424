package proxy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// free is how many slots could be had at once.
func free(th *throttle) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	limit, _ := th.limitLocked()
	return max(limit-th.taken, 0)
}

func TestThrottleRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(10, 0)
		defer th.stop()
		time.Sleep(time.Minute) // it begins with the first who asks
		for _, want := range []int{1, 2, 4, 8, 10, 10} {
			if got := free(th); got != want {
				t.Errorf("%d slots, want %d", got, want)
			}
			time.Sleep(rampStep)
		}
		th.restart()
		time.Sleep(time.Minute)
		if got := free(th); got != 1 {
			t.Errorf("after the service was away: %d slots, want 1", got)
		}
		var taken atomic.Int32 // those who wait get theirs as the ramp goes on
		for range 10 {
			go func() { _ = th.take(t.Context(), time.Now()); taken.Add(1) }()
		}
		for _, want := range []int32{1, 2, 4, 8, 10} {
			synctest.Wait()
			if got := taken.Load(); got != want {
				t.Errorf("%d have a slot, want %d", got, want)
			}
			time.Sleep(rampStep)
		}
	})
}

// Each message that ends done makes room for one more: a service that is quick gets all there are at once.
func TestThrottleRampOfAQuickService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(10, 0)
		defer th.stop()
		for want := range 10 {
			if got := free(th); got != want+1 {
				t.Errorf("%d slots after %d successes", got, want)
			}
			th.succeeded()
		}
		if got := free(th); got != 10 {
			t.Errorf("%d slots, more than there are", got)
		}
		th.restart()
		if got := free(th); got != 1 {
			t.Errorf("after the service was away: %d slots, want 1", got)
		}
		var taken atomic.Int32 // those who wait get theirs with a success of somebody else
		for range 3 {
			go func() { _ = th.take(t.Context(), time.Now()); taken.Add(1) }()
		}
		synctest.Wait()
		th.succeeded()
		synctest.Wait()
		if got := taken.Load(); got != 2 {
			t.Errorf("%d have a slot after one success, want 2", got)
		}
		time.Sleep(2 * rampStep)
	})
}

// Before the first success no more than a few can fail at once.
func TestThrottleUnproven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(64, 20)
		defer th.stop()
		_ = free(th)
		time.Sleep(time.Minute)
		if got := free(th); got != unprovenMost {
			t.Errorf("%d slots before the first success", got)
		}
		th.succeeded()
		if got := free(th); got != 64 {
			t.Errorf("%d slots after it", got)
		}
		if got := free(newThrottle(2, 20)); got != 1 {
			t.Errorf("%d slots", got)
		}
	})
}

func TestThrottleBrake(t *testing.T) {
	bad, missing := setback{outcome: forward.Fail, status: 404}, setback{reason: dedup.ReasonMissingID}
	cases := map[string]struct {
		after, successes, failures int
		brakes                     bool
		last                       setback
	}{
		"off":                     {0, 0, 1000, false, bad},
		"third before a success":  {20, 0, 3, true, bad},
		"second before a success": {20, 0, 2, false, bad},
		"after a success":         {20, 1, 19, false, bad},
		"twentieth":               {20, 1, 20, true, bad},
		"first of one":            {1, 1, 1, true, bad},
		"third without ID":        {20, 1, 3, true, missing},
		"second without ID":       {20, 1, 2, false, missing},
		"without ID, off":         {0, 1, 3, false, missing},
		"second of two":           {2, 0, 2, true, bad},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			th := newThrottle(8, c.after)
			defer th.stop()
			for range c.successes {
				th.succeeded()
			}
			began := 0
			for range c.failures {
				if th.failed(c.last) {
					began++
				}
			}
			brake, streak := th.state()
			if (brake != nil) != c.brakes || (began == 1) != c.brakes || streak != c.failures {
				t.Errorf("brake %v, begun %d times, streak %d", brake, began, streak)
			}
			if c.brakes && brake.last != c.last {
				t.Errorf("remembers %v", brake.last)
			}
		})
	}
}

// failing is a kind of message that never ends done.
type failing struct {
	setback
	attempts int  // until it is a dead letter
	proven   bool // a message ended done before
	inTurn   bool // they wait for each other, as messages of one ID do
}

// replicaOf works at such messages with the prefetch always full, until ctx ends, and counts.
func replicaOf(ctx context.Context, kind failing, slots int, took time.Duration, requests, letters *atomic.Int32) {
	th := newThrottle(slots, 20)
	defer th.stop()
	if kind.proven {
		_ = th.take(ctx, time.Now())
		time.Sleep(took)
		th.succeeded()
		th.give()
	}
	turns := make(chan struct{}, 4*slots)
	if kind.inTurn {
		turns = make(chan struct{}, 1)
	}
	once := func() error {
		turns <- struct{}{}
		defer func() { <-turns }()
		if err := th.take(ctx, time.Now()); err != nil {
			return err
		}
		defer th.give()
		s := kind.setback
		s.began = time.Now()
		time.Sleep(took)
		th.failed(s)
		requests.Add(1)
		return nil
	}
	var messages sync.WaitGroup
	for range 4 * slots {
		messages.Go(func() {
			for attempt := 1; once() == nil; attempt++ {
				if attempt%kind.attempts == 0 {
					letters.Add(1)
				}
			}
		})
	}
	messages.Wait()
}

// A queue whose messages all fail, of whatever kind, loses fewer than ten of them in ten minutes at each replica: with
// few slots and many, a quick service and a slow one.
func TestThrottleKeepsAQueue(t *testing.T) {
	for name, kind := range map[string]failing{
		"wrong path": {setback: setback{outcome: forward.Fail, status: 404}, attempts: 6},
		"rejected":   {setback: setback{outcome: forward.Reject, status: 400}, attempts: 1},
		"no answer":  {setback: setback{outcome: forward.Unknown}, attempts: 1}, // with FORWARD_ON_UNKNOWN=deadletter
		"missing ID": {setback: setback{reason: dedup.ReasonMissingID}, attempts: 1},
		"conflict":   {setback: setback{reason: dedup.ReasonConflict}, attempts: 1, proven: true, inTurn: true},
	} {
		for _, slots := range []int{4, 100} {
			for _, took := range []time.Duration{time.Millisecond, 2 * time.Second} {
				t.Run(fmt.Sprintf("%s, %d slots, %s", name, slots, took), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
						defer cancel()
						var requests, letters [3]atomic.Int32 // of each replica
						var replicas sync.WaitGroup
						for i := range requests {
							replicas.Go(func() { replicaOf(ctx, kind, slots, took, &requests[i], &letters[i]) })
						}
						replicas.Wait()
						for i := range requests {
							// It goes on trying, too.
							if r, l := requests[i].Load(), letters[i].Load(); l >= 10 || r < brakeEarly+3 || r >= 10 {
								t.Errorf("replica %d: %d dead letters of %d attempts in ten minutes", i+1, l, r)
							}
						}
					})
				})
			}
		}
	}
}

// One at a time, pauses that grow to five minutes, and all at once free again after one success.
func TestThrottleBrakePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(8, 20)
		defer th.stop()
		for range brakeEarly {
			th.failed(setback{outcome: forward.Fail, status: 500})
		}
		began, tried := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			if err := th.take(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if n := free(th); n != 0 {
				t.Fatalf("%d more slots while it brakes", n)
			}
			th.failed(setback{outcome: forward.Fail, status: 500})
			th.give()
			tried++
		}
		if tried < 4 || brakeEarly+tried > 9 {
			t.Errorf("%d tries in ten minutes", tried)
		}
		_ = th.take(t.Context(), time.Now())
		if !th.succeeded() {
			t.Error("a success does not release the brake")
		}
		th.give()
		if n := free(th); n != 1 {
			t.Errorf("%d slots after the brake, want the ramp to begin", n)
		}
		time.Sleep(time.Second)
		if n := free(th); n != 8 {
			t.Errorf("%d slots a second later", n)
		}
	})
}

// A slot that is given while its taker gives up is not lost.
func TestThrottleLosesNoSlot(t *testing.T) {
	th := newThrottle(3, 0)
	defer th.stop()
	th.began = th.began.Add(-time.Minute)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if th.take(ctx, time.Now()) == nil {
				th.give()
			}
		})
	}
	all.Wait()
	if th.taken != 0 || th.waiting.Len() != 0 || free(th) != 3 {
		t.Errorf("%d taken, %d waiting", th.taken, th.waiting.Len())
	}
}

// Who waits longest comes first.
func TestThrottleIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(1, 0)
		_ = th.take(t.Context(), time.Now())
		order := make(chan int, 3)
		for i := range 3 {
			go func() { _ = th.take(t.Context(), time.Now()); order <- i; th.give() }()
			synctest.Wait()
		}
		th.give()
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("%d came instead of %d", got, want)
			}
		}
	})
}

func TestSetbackAdvice(t *testing.T) {
	for want, s := range map[string]setback{
		"DEDUP_ID_FROM":                      {reason: dedup.ReasonMissingID},
		"not unique":                         {reason: dedup.ReasonConflict},
		"check FORWARD_URL":                  {outcome: forward.Fail, status: 404},
		"FORWARD_STATUS_DONE=200-299,409":    {outcome: forward.Defer, status: 409},
		"FORWARD_HEADERS":                    {outcome: forward.Fail, status: 401},
		"FORWARD_TIMEOUT":                    {outcome: forward.Unknown},
		"FORWARD_BODY":                       {outcome: forward.Reject, status: 400},
		"look at its log":                    {outcome: forward.Fail, status: 500},
		"where it redirects to":              {outcome: forward.Fail, status: 302},
		"FORWARD_RATE":                       {outcome: forward.Defer, status: 503},
		"FORWARD_CONTENT_TYPE":               {outcome: forward.Reject, status: 415},
		"a proxy before the service gets no": {outcome: forward.Unknown, status: 502},
	} {
		if got := s.advice(); !strings.Contains(got, want) {
			t.Errorf("%v: %q does not say %q", s, got, want)
		}
	}
}
