package proxy

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

const (
	// heapRoom is by how many bytes a small heap may grow until garbage is collected. Go's default is the size of the heap,
	// which is a few MB here: under load that would be dozens of collections a second, a fifth of all the work.
	heapRoom = 16 << 20
	// gcUsual and gcMost are the bounds of GOGC in per cent: Go's default, which a large heap gets, and what makes the least
	// heap that Go collects at all, 4 MB at the default, as large as heapRoom.
	gcUsual, gcMost = 100, 400
	// gcStep keeps GOGC from following every small change: to set it stops the program for some 20 µs.
	gcStep = 25
)

// heapPacer sets GOGC after each garbage collection by what it left, so that memory is bounded as with Go's default when
// bodies are large, and time is saved when they are small. GOMEMLIMIT holds all the same.
type heapPacer struct {
	percent int
	samples []runtimemetrics.Sample
}

// paceHeap begins, unless the operator has set GOGC. It is called once a process.
func paceHeap(gogc string) {
	if gogc != "" {
		return
	}
	p := &heapPacer{percent: gcUsual, samples: []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}, // what GOGC counts
	}}
	p.collected()
}

// collected is called after each garbage collection: p is garbage to all but itself, and so to be finalized.
func (p *heapPacer) collected() {
	runtimemetrics.Read(p.samples)
	live := uint64(0)
	for _, s := range p.samples {
		live += s.Value.Uint64()
	}
	if percent := gcPercent(live); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.SetFinalizer(p, (*heapPacer).collected)
}

// gcPercent is GOGC for a heap of so many live bytes.
func gcPercent(live uint64) int {
	percent := int(heapRoom * 100 / max(live, 1))
	return min(max(percent/gcStep*gcStep, gcUsual), gcMost)
}
