package dedup

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Who asked to be called is called once, also when the lease is lost already, and not after taking that back.
func TestAfterLost(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		var called, other atomic.Int64
		l, taken := hold(t, s, "key"), hold(t, s, "taken")
		l.AfterLost(func() { other.Add(1) })
		l.AfterLost(func() { called.Add(1) })
		taken.AfterLost(func() { other.Add(1) })
		taken.AfterLost(nil)
		if lost(l) || called.Load() != 0 {
			t.Fatal("called before the lease was lost")
		}
		m.set(errors.New("the store is down"), 0)
		time.Sleep(2 * lease)
		if !lost(l) || !lost(taken) || called.Load() != 1 || other.Load() != 0 {
			t.Errorf("lost %v and %v, called %d times, the others %d", lost(l), lost(taken), called.Load(), other.Load())
		}
		l.AfterLost(func() { called.Add(1) })
		if synctest.Wait(); called.Load() != 2 {
			t.Error("not called for a lease that was lost before")
		}
	})
}
