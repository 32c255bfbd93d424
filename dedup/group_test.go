package dedup

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gated is a backend whose groups wait until the test lets them go.
type gated struct {
	*memory
	gate chan error // one value lets one group go; an error fails it

	mu     sync.Mutex
	groups []int // the sizes, in the order of leaving
}

func newGated() *gated { return &gated{memory: newMemory(), gate: make(chan error)} }

// openGated returns a store that is closed at the end of the bubble.
func openGated(t *testing.T, g *gated) *Store {
	t.Helper()
	s := newStore(g, nil)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (g *gated) run(ctx context.Context, group []*call) {
	g.mu.Lock()
	g.groups = append(g.groups, len(group))
	g.mu.Unlock()
	if err := <-g.gate; err != nil {
		for _, c := range group {
			c.err = err
		}
		return
	}
	g.memory.run(ctx, group)
}

func (g *gated) left() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.groups...)
}

// claims starts a number of claims and returns where their errors arrive.
func claims(ctx context.Context, s *Store, count int) <-chan error {
	results := make(chan error, count)
	for range count {
		go func() {
			_, err := s.Claim(ctx, ClaimRequest{Key: NewDeadID(), Token: NewToken(), Lease: lease, Retention: keep})
			results <- err
		}()
	}
	synctest.Wait()
	return results
}

func expectGroups(t *testing.T, g *gated, want ...int) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, g.left()); diff != "" {
		t.Fatalf("sizes of the groups that left (-want +got):\n%s", diff)
	}
}

func expectErrors(t *testing.T, results <-chan error, want error) {
	t.Helper()
	for range cap(results) {
		if err := <-results; !errors.Is(err, want) {
			t.Errorf("claim: %v, want %v", err, want)
		}
	}
}

func TestALoneOperationGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		start := time.Now()
		result := claims(t.Context(), s, 1)
		expectGroups(t, g, 1)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("left after %v", waited)
		}
		g.gate <- nil
		expectErrors(t, result, nil)
	})
}

func TestALoneOperationAfterALongRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		for i, rest := range []time.Duration{0, linger / 2, linger, 2 * linger} {
			time.Sleep(rest)
			result := claims(t.Context(), s, 1)
			expectGroups(t, g, []int{1, 1, 1, 1}[:i+1]...)
			g.gate <- nil
			expectErrors(t, result, nil)
		}
	})
}

func TestOperationsGatherBehindAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		first := claims(t.Context(), s, 1)
		others := claims(t.Context(), s, 2*groupSize+44)
		expectGroups(t, g, 1)
		g.gate <- nil
		expectErrors(t, first, nil)
		expectGroups(t, g, 1, groupSize)
		g.gate <- nil
		g.gate <- nil
		g.gate <- nil
		expectErrors(t, others, nil)
		expectGroups(t, g, 1, groupSize, groupSize, 44)
	})
}

func TestASlowGroupHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		broken := errors.New("broken")
		first := claims(t.Context(), s, 1)
		second := claims(t.Context(), s, 2)
		expectGroups(t, g, 1)
		time.Sleep(slowAfter)
		expectGroups(t, g, 1, 2)
		third := claims(t.Context(), s, 3)
		time.Sleep(slowAfter)
		expectGroups(t, g, 1, 2, 3)
		// No more than maxInFlight at a time.
		fourth := claims(t.Context(), s, 4)
		time.Sleep(10 * slowAfter)
		expectGroups(t, g, 1, 2, 3)
		// The gate hands out its values in the order in which groups came.
		g.gate <- broken
		expectErrors(t, first, broken)
		expectGroups(t, g, 1, 2, 3, 4)
		g.gate <- nil
		g.gate <- nil
		g.gate <- nil
		expectErrors(t, second, nil)
		expectErrors(t, third, nil)
		expectErrors(t, fourth, nil)
	})
}

func TestACancelledOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		inFlight := claims(ctx, s, 1)
		gathered := claims(ctx, s, 5)
		cancel(stop)
		expectErrors(t, inFlight, stop)
		expectErrors(t, gathered, stop)
		expectErrors(t, claims(ctx, s, 1), stop)
		g.gate <- nil
		// What had not left never leaves.
		time.Sleep(time.Second)
		expectGroups(t, g, 1)
	})
}

func TestCloseWaitsForWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		first := claims(t.Context(), s, 1)
		second := claims(t.Context(), s, 2)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("closed with operations in flight")
		default:
		}
		expectErrors(t, claims(t.Context(), s, 1), ErrClosed)
		g.gate <- nil
		g.gate <- nil
		expectErrors(t, first, nil)
		expectErrors(t, second, nil)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Whoever is ready to run when a group is about to leave is in it, but for what the scheduler does now and then: on a busy
// processor operations do not leave alone.
func TestThoseWhoAreReadyLeaveTogether(t *testing.T) {
	usual := runtime.GOMAXPROCS(1) // so that one of them comes first
	defer runtime.GOMAXPROCS(usual)
	const tries = 20
	together := 0
	for range tries {
		synctest.Test(t, func(t *testing.T) {
			g := newGated()
			results := claims(t.Context(), openGated(t, g), 20)
			if g.left()[0] > 1 {
				together++
			}
			close(g.gate) // all may go
			expectErrors(t, results, nil)
		})
	}
	if together < tries/2 {
		t.Errorf("together in %d of %d tries", together, tries)
	}
}
