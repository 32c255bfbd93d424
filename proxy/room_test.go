package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func told(g *guest) bool {
	select {
	case <-g.leave:
		return true
	default:
		return false
	}
}

// TestTheOldestMakesRoom enters guests in another order than they arrived.
func TestTheOldestMakesRoom(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := newRoom(8)
	fixed := r.enter(at(0), false) // the oldest, and may not go
	second, first, third := r.enter(at(2), true), r.enter(at(1), true), r.enter(at(3), true)
	if told(first) || told(second) || told(third) {
		t.Fatal("somebody left although half of the prefetch is free")
	}
	fourth := r.enter(at(4), true)
	if !told(first) || told(fixed) || told(second) || told(third) || told(fourth) {
		t.Fatal("not the oldest, and it alone, was told to leave")
	}
	r.stay(first) // it could not
	if !told(second) || told(third) {
		t.Fatal("the next one was not told instead")
	}
	r.exit(second)
	r.exit(third)
	fifth := r.enter(at(5), true) // fixed, first, fourth, fifth
	if told(fourth) || told(fifth) {
		t.Error("half of the prefetch is free, and somebody was told to leave")
	}
	for _, g := range []*guest{fixed, first, fourth, fifth} {
		r.exit(g)
	}
	if r.resting != 0 || len(r.movable) != 0 {
		t.Errorf("%d rest, %d may be told, and nobody is there", r.resting, len(r.movable))
	}
}

func TestAPrefetchOfOneIsNeverHeld(t *testing.T) {
	r := newRoom(1)
	if g := r.enter(time.Now(), true); !told(g) {
		t.Error("the only place is taken by somebody who rests")
	}
}

// restBench is a queue that can rest and move messages, and nothing else.
func restBench(t *testing.T, prefetch int) (*queue, *fakeBroker) {
	b := newFakeBroker()
	q := &queue{log: slog.New(slog.DiscardHandler), publisher: b.publisher(t), room: newRoom(prefetch), waitSteps: []time.Duration{5 * time.Second, 30 * time.Second}}
	q.cfg.Name, q.cfg.Retry.Hold = "orders", 5*time.Second
	b.old = []string{"orders.wait.5s", "orders.wait.30s"}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"})
	q.parking = newParking(newQuietPart("wait queues", q.log, gauge))
	q.metrics = &queueMetrics{}
	return q, b
}

type restResult struct {
	parked bool
	err    error
	took   time.Duration
}

func (q *queue) startRest(ctx context.Context, d, free time.Duration) <-chan restResult {
	result := make(chan restResult, 1)
	m := &message{delivery: &delivery{}, received: time.Now(), seen: time.Now()}
	go func() {
		began := time.Now()
		parked, err := q.rest(ctx, m, d, free)
		result <- restResult{parked, err, time.Since(began)}
	}()
	synctest.Wait()
	return result
}

func TestRestingMakesRoom(t *testing.T) {
	s := time.Second
	synctest.Test(t, func(t *testing.T) {
		q, b := restBench(t, 4)
		short := q.startRest(t.Context(), 100*time.Millisecond, 100*time.Millisecond)
		first := q.startRest(t.Context(), 4*s, 4*s)
		second := q.startRest(t.Context(), 60*s, 60*s)
		if got := <-first; !got.parked || got.took != 0 {
			t.Errorf("the oldest that is worth it: %+v", got)
		}
		if got := <-short; got.parked || got.took != 100*time.Millisecond {
			t.Errorf("a short rest: %+v", got)
		}
		third, fourth := q.startRest(t.Context(), 4*s, 4*s), q.startRest(t.Context(), 4*s, 0)
		if got := <-second; !got.parked {
			t.Errorf("the next oldest: %+v", got)
		}
		if got, stayed := <-third, <-fourth; got.parked || stayed.parked || got.took != 4*s || stayed.took != 4*s {
			t.Errorf("two that have room: %+v, %+v", got, stayed)
		}
		want := map[string]int{"orders.wait.5s": 1, "orders.wait.30s": 1} // RETRY_HOLD, and the longest step that is not too long
		if !maps.Equal(b.most, want) {
			t.Errorf("moved to %v, want %v", b.most, want)
		}
	})
}

// TestWhatCannotMoveRestsOn has a wait queue that refuses: each message rests as long as it would have, and not every
// one of them is tried.
func TestWhatCannotMoveRestsOn(t *testing.T) {
	s := time.Second
	synctest.Test(t, func(t *testing.T) {
		q, b := restBench(t, 2)
		tries := 0
		b.answer("orders.wait.5s", func() error { tries++; return errNacked })
		var all []<-chan restResult
		for range 6 {
			all = append(all, q.startRest(t.Context(), 4*s, 4*s))
		}
		synctest.Wait()
		if status := q.parking.part.status(); tries != 1 || status.Up {
			t.Errorf("%d tries, status %+v", tries, status)
		}
		for i, result := range all {
			if got := <-result; got.parked || got.err != nil || got.took != 4*s {
				t.Errorf("message %d: %+v", i, got)
			}
		}
		if status := q.parking.part.status(); tries != 1 || !status.Up {
			t.Errorf("%d tries, status %+v when nothing waits any more", tries, status)
		}
		time.Sleep(time.Minute)
		b.answer("orders.wait.5s", nil)
		first, _ := q.startRest(t.Context(), 4*s, 4*s), q.startRest(t.Context(), 4*s, 4*s)
		if got := <-first; !got.parked || !q.parking.part.status().Up {
			t.Errorf("after the trouble: %+v, status %+v", got, q.parking.part.status())
		}
		time.Sleep(5 * s)
		synctest.Wait()
		if q.room.resting != 0 || len(q.room.movable) != 0 {
			t.Errorf("%d rest, %d may be told", q.room.resting, len(q.room.movable))
		}
	})
}

// TestRestEndsWithItsSession also when a move is under way that the broker does not answer: no failure of the wait
// queue's.
func TestRestEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := restBench(t, 1)
		b.answer("orders.wait.30s", silence(t))
		hold, end := context.WithCancelCause(t.Context())
		moving := q.startRest(hold, time.Hour, time.Hour)
		resting := q.startRest(hold, time.Hour, 0)
		end(errSessionEnded)
		for _, result := range []<-chan restResult{moving, resting} {
			if got := <-result; got.parked || !errors.Is(got.err, errSessionEnded) {
				t.Errorf("got %+v", got)
			}
		}
		if !q.parking.part.status().Up {
			t.Errorf("status %+v", q.parking.part.status())
		}
	})
}
