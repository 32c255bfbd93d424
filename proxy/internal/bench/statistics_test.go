package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for n := range 200 {
		sorted = append(sorted, time.Duration(n))
	}
	for percent, want := range map[int]time.Duration{0: 0, 50: 100, 99: 198, 100: 199} {
		if got := percentile(sorted, percent); got != want {
			t.Errorf("percentile %d is %d, want %d", percent, got, want)
		}
	}
	if got := percentile(sorted[:1], 99); got != 0 {
		t.Errorf("percentile of one value is %d", got)
	}
}

func TestMediansOfFigures(t *testing.T) {
	got := medians([]figures{{speed: 10, cost: 3}, {speed: 30, cost: 1}, {speed: 20, cost: 2}})
	if diff := cmp.Diff(figures{speed: 20, cost: 2}, got); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
	if got := medians(nil); len(got) != 0 {
		t.Errorf("medians of nothing: %v", got)
	}
}

func TestThousands(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 999.4: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(value); got != want {
			t.Errorf("%v is written %q, want %q", value, got, want)
		}
	}
}
