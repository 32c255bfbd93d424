package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rabbitonce/dedup"
)

// TestALetterUnderWayHasTheLastWord: at the end of a process a letter is not given up whose confirm is on its way, or whoever
// gets the message next publishes it a second time. A lost session is another matter: the ack would reach nobody.
func TestALetterUnderWayHasTheLastWord(t *testing.T) {
	for name, c := range map[string]struct {
		why     error
		confirm time.Duration
		want    fate
		took    time.Duration
	}{
		"shutdown":           {errDraining, time.Second, fateDead, time.Second},
		"pause":              {errPaused, time.Second, fateDead, time.Second},
		"shutdown, too late": {errDraining, time.Minute, fateReturned, lastWord},
		"session lost":       {errSessionEnded, time.Second, fateReturned, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, b := restBench(t, 4)
				q.cfg.DeadLetterQueue = "orders.dead"
				b.old = []string{"orders.dead"}
				b.answer("orders.dead", func() error { time.Sleep(c.confirm); return nil })
				q.letters = newQuietPart("dead letters", q.log, prometheus.NewGauge(prometheus.GaugeOpts{}))
				q.metrics.deadLetters = map[dedup.Reason]prometheus.Counter{dedup.ReasonRejected: prometheus.NewCounter(prometheus.CounterOpts{Name: "letters"})}
				hold, end := context.WithCancelCause(t.Context())
				ended := make(chan ending)
				go func() {
					m := &message{delivery: &delivery{}, received: time.Now(), seen: time.Now()}
					ended <- q.publishLetter(hold, m, obituary{reason: dedup.ReasonRejected}).ending
				}()
				synctest.Wait()
				began := time.Now()
				end(c.why)
				if got := <-ended; got.fate != c.want || time.Since(began) != c.took {
					t.Errorf("%s after %v, want %s after %v", got.fate, time.Since(began), c.want, c.took)
				}
				time.Sleep(2 * time.Minute) // for what nobody waits for any more
			})
		})
	}
}

// TestWhatIsHeldTooLongMoves to a wait queue, and stays where it cannot.
func TestWhatIsHeldTooLongMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := restBench(t, 4)
		m := &message{delivery: &delivery{}, received: time.Now(), seen: time.Now()}
		if got := q.noSlot(t.Context(), m, errHeldTooLong); !got.over || got.ending.fate != fateParked || b.most["orders.wait.30s"] != 1 {
			t.Errorf("%+v, moved to %v", got, b.most)
		}
		b.answer("orders.wait.30s", func() error { return errNacked })
		if got := q.noSlot(t.Context(), m, errHeldTooLong); got.over {
			t.Errorf("it could not move: %+v", got)
		}
		if got := q.noSlot(t.Context(), m, errors.New("shutting down")); !got.over || got.ending.fate != fateReturned {
			t.Errorf("at the end: %+v", got)
		}
	})
}
