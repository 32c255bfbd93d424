package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Each write has its full time, and those at about the same time have one context in common.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p patience
		contexts := map[context.Context]bool{}
		for range 1000 {
			ctx := p.context()
			contexts[ctx] = true
			time.Sleep(10 * time.Millisecond)
			go func() {
				time.Sleep(recordTimeout - 20*time.Millisecond)
				if ctx.Err() != nil {
					t.Errorf("ended early: %v", ctx.Err())
				}
				time.Sleep(recordTimeout/10 + 40*time.Millisecond)
				if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("did not end: %v", context.Cause(ctx))
				}
			}()
		}
		if n := len(contexts); n < 40 || n > 51 {
			t.Errorf("%d contexts in ten seconds", n)
		}
		time.Sleep(2 * recordTimeout)
	})
}
