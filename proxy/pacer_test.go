package proxy

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacer(t *testing.T) {
	for rate, want := range map[float64]time.Duration{0: 0, 10: 2 * time.Second, 0.5: 40 * time.Second, 1000: 20 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p, start := newPacer(rate), time.Now()
			begin := func() {
				_ = p.wait(t.Context())
				p.begun()
			}
			var all sync.WaitGroup
			for range 21 {
				all.Go(begin)
			}
			all.Wait()
			if took := time.Since(start); took != want {
				t.Errorf("21 at %v a second took %v, want %v", rate, took, want)
			}
			time.Sleep(time.Hour) // what was not used is not saved up
			start = time.Now()
			for range 3 {
				begin()
			}
			if took := time.Since(start); took != want/10 {
				t.Errorf("3 after a pause took %v, want %v", took, want/10)
			}
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(errDraining)
			if err := p.wait(ended); rate != 0 && err != errDraining {
				t.Errorf("waited although ended: %v", err)
			}
		})
	}
}

// Turns in which nothing begins, and those of sessions that end, cost nobody anything.
func TestPacerPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(1)
		for range 100 { // copies of what is done
			_ = p.wait(t.Context())
			p.pass()
		}
		_ = p.wait(t.Context())
		p.begun()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if p.wait(ctx) == nil {
						p.pass()
					}
				})
			}
			all.Wait()
			cancel()
		}
		start := time.Now()
		_ = p.wait(t.Context())
		p.pass()
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("the next one waits %v", took)
		}
	})
}
