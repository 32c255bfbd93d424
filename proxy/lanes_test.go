package proxy

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLanes joins and leaves in any order: in each line the earliest place that has not left has its turn and no other
// has, and a line that all have left is gone.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLanes()
		lines := map[string][]*place{} // those that have not left, in order
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "line")
			if line := lines[name]; len(line) > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, len(line)-1).Draw(t, "place")
				line[i].leave()
				if rapid.Bool().Draw(t, "twice") {
					line[i].leave()
				}
				lines[name] = append(line[:i:i], line[i+1:]...)
			} else {
				lines[name] = append(line, l.join(name))
			}
			busy := 0
			for name, line := range lines {
				if len(line) > 0 {
					busy++
				}
				for i, p := range line {
					if hasTurn(p) != (i == 0) {
						t.Fatalf("place %d of %d in line %q: turn %t", i, len(line), name, hasTurn(p))
					}
				}
			}
			if len(l.all) != busy {
				t.Fatalf("%d lines are kept, %d are in use", len(l.all), busy)
			}
		}
	})
}

func hasTurn(p *place) bool {
	select {
	case <-p.turn:
		return true
	default:
		return false
	}
}

func lines(l *lanes) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}
