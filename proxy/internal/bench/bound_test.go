package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBoundsAreJudged(t *testing.T) {
	by := map[program]figures{
		programBaseline:   {cost: 50, speed: 8000, medianLatency: 2},
		programRabbitonce: {cost: 40, speed: 12000, medianLatency: 2.5, peak: 34.96},
	}
	for _, c := range []struct {
		bound bound
		want  verdict
	}{
		{atMost(cost, 0.75).over(programBaseline), verdict{What: "CPU µs/message / baseline", Got: "0.80", Bound: "≤ 0.75"}},
		{atLeast(speed, 1.5).over(programBaseline), verdict{What: "messages/s / baseline", Got: "1.50", Bound: "≥ 1.5", Met: true}},
		{atMost(medianLatency, 1).above(programBaseline), verdict{What: "median ms above the baseline's", Got: "0.50", Bound: "≤ 1", Met: true}},
		{atMost(peak, 35), verdict{What: "peak memory MB", Got: "35.0", Bound: "≤ 35", Met: true}},
		{atLeast(speed, 12001), verdict{What: "messages/s", Got: "12,000", Bound: "≥ 12001"}},
		{atMost(cost, 1.6).over(programFloor), verdict{What: "CPU µs/message / floor", Got: "not measured", Bound: "≤ 1.6"}},
		{atMost(idleCPU, 0.5), verdict{What: "CPU % of a core", Got: "not measured", Bound: "≤ 0.5"}},
	} {
		if diff := cmp.Diff(c.want, c.bound.judge(by)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.bound, diff)
		}
	}
}
