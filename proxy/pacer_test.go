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
			p, began := newPacer(rate), time.Now()
			var all sync.WaitGroup
			for range 21 {
				all.Go(func() { _ = p.wait(t.Context()) })
			}
			all.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("21 at %v a second took %v, want %v", rate, took, want)
			}
			time.Sleep(time.Hour) // what was not used is not saved up
			began = time.Now()
			for range 3 {
				_ = p.wait(t.Context())
			}
			if took := time.Since(began); took != want/10 {
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
