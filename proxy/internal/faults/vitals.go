package faults

import (
	"context"
	"fmt"
	"time"
)

// vitals are what must not grow in a process, however many faults it has lived through.
type vitals struct {
	goroutines, files, heap float64
}

// measure looks at every process at rest, and compares it with itself when it first was.
func (s *stage) measure() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, r := range s.replicas {
		m, err := r.current().Metrics(ctx)
		if err != nil {
			return fmt.Errorf("measure %s: %w", r.process(), err)
		}
		s.parked = 0
		for _, q := range queueNames {
			s.parked += m[fmt.Sprintf(`rabbitonce_deliveries_total{outcome="parked",queue=%q}`, q)]
		}
		now := vitals{goroutines: m["go_goroutines"], files: m["process_open_fds"], heap: m["go_memstats_heap_inuse_bytes"]}
		first, known := s.rest[r.process()]
		if !known {
			s.rest[r.process()] = now
			continue
		}
		if err := now.grownFrom(first); err != nil {
			return fmt.Errorf("%s: %w", r.process(), err)
		}
	}
	return nil
}

// grownFrom is about a process at rest: idle connections and the collector's laziness are no growth.
func (v vitals) grownFrom(first vitals) error {
	const some, heap = 30, 64 << 20
	if v.goroutines > first.goroutines+some || v.files > first.files+some || v.heap > first.heap+heap {
		return fmt.Errorf("it has grown: goroutines %.0f to %.0f, open files %.0f to %.0f, heap %.0f to %.0f bytes",
			first.goroutines, v.goroutines, first.files, v.files, first.heap, v.heap)
	}
	return nil
}
