package proxy

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int{0: 400, mb: 400, 4 * mb: 400, 5 * mb: 300, 8 * mb: 200, 16 * mb: 100, 1024 * mb: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d bytes: %d, want %d", live, got, want)
		}
	}
}

// GOGC follows the heap both ways, as often as garbage is collected; an operator's stays.
func TestPaceHeap(t *testing.T) {
	usual := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	set := func() int {
		percent := debug.SetGCPercent(77)
		debug.SetGCPercent(percent)
		return percent
	}
	if paceHeap("50"); set() != 77 {
		t.Errorf("GOGC is %d though the operator has set it", set())
	}
	paceHeap("")
	becomes := func(small bool) {
		t.Helper()
		waitUntil(t, func() bool {
			runtime.GC()
			time.Sleep(10 * time.Millisecond) // finalizers have their own goroutine
			return (set() > gcUsual) == small
		})
	}
	becomes(true)
	large := make([]byte, 4*heapRoom)
	becomes(false)
	runtime.KeepAlive(large)
	large = nil
	becomes(true)
}
