package proxy

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	judge "rabbitonce/proxy/internal/faults/check"
)

var (
	simSeed  = flag.Uint64("simulation.seed", 0, "run this schedule alone, and print its story")
	simCount = flag.Int("simulation.schedules", 2000, "how many schedules to run")
)

// TestSimulation runs random schedules of messages and faults on the whole pipeline: real replicas, a fake broker, a simulated
// service and store, in simulated time. A schedule that breaks a promise prints its seed.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		replay(t, *simSeed)
		return
	}
	count := *simCount
	if testing.Short() {
		count = min(count, 200)
	}
	usual := debug.SetGCPercent(400) // a sixth of the time
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	first := uint64(time.Now().UnixNano())
	t.Logf("%d schedules, the first is %d", count, first)
	var next atomic.Int64
	var failed atomic.Int64
	for range 2 {
		t.Run("schedules", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1); i <= int64(count) && failed.Load() < 3; i = next.Add(1) {
				if !runSeed(t, first+uint64(i-1), false) {
					failed.Add(1)
				}
			}
		})
	}
}

// replay runs one schedule and tells its story. Pauses are jittered and goroutines take turns as they like, so it tries until a
// promise is broken again.
func replay(t *testing.T, seed uint64) {
	for range 50 {
		if !runSeed(t, seed, true) {
			return
		}
	}
}

// runSeed runs one schedule and tells whether all promises were kept.
func runSeed(t *testing.T, seed uint64, loud bool) bool {
	s := draw(seed)
	var result simResult
	watchdog := time.AfterFunc(2*time.Minute, func() { panic(fmt.Sprintf("schedule %d stands still", seed)) })
	defer watchdog.Stop()
	func() {
		defer func() {
			if p := recover(); p != nil {
				result.problems = append(result.problems, fmt.Sprint(p))
				if loud {
					stacks := make([]byte, 1<<20)
					t.Logf("goroutines:\n%s", stacks[:runtime.Stack(stacks, true)])
				}
			}
		}()
		synctest.Test(t, func(t *testing.T) { result = simulate(t, s, loud) })
	}()
	if len(result.problems) == 0 {
		return true
	}
	t.Errorf("schedule %d broke:\n  %s\nreplay it with: go test -race ./proxy -run TestSimulation -simulation.seed=%d", seed, strings.Join(result.problems, "\n  "), seed)
	if loud {
		t.Logf("settings: %s\n%s", strings.Join(s.environ, " "), strings.Join(result.story, "\n"))
		for _, r := range slices.Sorted(maps.Keys(result.report.Remarks)) {
			t.Logf("%6d %s", result.report.Remarks[judge.Remark(r)], r)
		}
	}
	return false
}
