package proxy

import (
	"testing"
	"time"
)

func TestBurst(t *testing.T) {
	start := time.Now()
	var b burst
	if b.quiet(start) != 0 {
		t.Error("waits for nothing")
	}
	for i := range 16 {
		b.add(start.Add(time.Duration(i) * time.Millisecond))
	}
	if got := b.quiet(start.Add(20 * time.Millisecond)); got != 0 {
		t.Errorf("waits %v for a few", got)
	}
	b.add(start.Add(20 * time.Millisecond))
	if got := b.quiet(start.Add(100 * time.Millisecond)); got != 400*time.Millisecond {
		t.Errorf("waits %v for many", got)
	}
	if got := b.quiet(start.Add(time.Second)); got != 0 {
		t.Errorf("waits %v long after", got)
	}
	late := b
	late.add(start.Add(300 * time.Millisecond)) // one more, after the burst, does not hide it
	if got := late.quiet(start.Add(300 * time.Millisecond)); got != 200*time.Millisecond {
		t.Errorf("waits %v for an earlier burst", got)
	}
	b.add(start.Add(time.Second)) // another one begins
	if got := b.quiet(start.Add(time.Second)); got != 0 {
		t.Errorf("waits %v for one", got)
	}
}
