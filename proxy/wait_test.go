package proxy

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var errAway = errors.New("away")

func testGate(probe func(context.Context) error) *gate {
	return newGate(newPart("service", slog.New(slog.DiscardHandler), prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})), probe)
}

func TestGateOpensWhenTheProbeSucceedsAndClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var away atomic.Bool
		away.Store(true)
		g := testGate(func(context.Context) error {
			if away.Load() {
				return errAway
			}
			return nil
		})
		done := make(chan struct{})
		go func() { defer close(done); g.run(ctx) }()
		defer func() { stop(); <-done }()

		time.Sleep(5 * time.Second)
		synctest.Wait()
		if g.isOpen() || g.part.status().Problem != "away" {
			t.Fatalf("open %v, status %+v", g.isOpen(), g.part.status())
		}
		away.Store(false)
		if err := g.wait(ctx); err != nil || !g.part.status().Up {
			t.Fatalf("wait: %v, status %+v", err, g.part.status())
		}
		g.close(errAway)
		if g.isOpen() {
			t.Fatal("open after close")
		}
		if err := g.wait(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// TestGateDampsAServiceThatOnlyAnswersProbes closes the gate as soon as it opens, as a service does that takes
// connections but no requests.
func TestGateDampsAServiceThatOnlyAnswersProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		g := testGate(func(context.Context) error { return nil })
		done := make(chan struct{})
		go func() { defer close(done); g.run(ctx) }()
		defer func() { stop(); <-done }()

		began, opened := time.Now(), 0
		for time.Since(began) < time.Minute {
			if err := g.wait(ctx); err != nil {
				t.Fatal(err)
			}
			opened++
			g.close(errAway)
		}
		if opened > 60 {
			t.Errorf("opened %d times in a minute", opened)
		}
	})
}

func TestGateWaitEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errDraining)
	if err := testGate(nil).wait(ctx); !errors.Is(err, errDraining) {
		t.Errorf("got %v", err)
	}
}

func TestCopiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCopies()
		inside, most := 0, 0
		for range 5 {
			go func() {
				if err := c.enter(t.Context(), "k"); err != nil {
					t.Error(err)
					return
				}
				inside++
				most = max(most, inside)
				time.Sleep(time.Second)
				inside--
				c.leave("k")
			}()
		}
		synctest.Wait()
		began := time.Now()
		if err := c.enter(t.Context(), "other"); err != nil || time.Since(began) != 0 {
			t.Errorf("another key waits: %v, %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most != 1 || len(c.keys) != 1 {
			t.Errorf("%d copies at once, keys %v", most, c.keys)
		}
	})
}

func TestCopiesWaitEndsWithItsContext(t *testing.T) {
	c := newCopies()
	_ = c.enter(t.Context(), "k")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errSessionEnded)
	if err := c.enter(ctx, "k"); !errors.Is(err, errSessionEnded) {
		t.Errorf("got %v", err)
	}
}

func TestBackoffDoublesToItsLastAndJittersByAFifth(t *testing.T) {
	b := backoff{first: time.Second, last: 5 * time.Second}
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		want *= time.Second
		if got := b.pause(); got < want*8/10 || got > want*12/10 {
			t.Errorf("pause %v, want about %v", got, want)
		}
	}
	b.reset()
	if got := b.pause(); got > 2*time.Second {
		t.Errorf("after reset: %v", got)
	}
}

func TestAPauseIsShortenedOrLengthenedAsItMay(t *testing.T) {
	for range 1000 {
		if got := (move{pause: time.Minute}).jittered(); got < 48*time.Second || got > time.Minute {
			t.Fatalf("a step of 1m became %v", got)
		}
		if got := (move{pause: time.Minute, asked: true}).jittered(); got < time.Minute || got > 72*time.Second {
			t.Fatalf("1m that was asked for became %v", got)
		}
	}
}

func TestLadder(t *testing.T) {
	l := Ladder{time.Second, 5 * time.Second}
	for n, want := range map[int]time.Duration{-1: time.Second, 0: time.Second, 1: time.Second, 2: 5 * time.Second, 3: 5 * time.Second, 1000: 5 * time.Second} {
		if got := l.step(n); got != want {
			t.Errorf("step %d is %v, want %v", n, got, want)
		}
	}
}
