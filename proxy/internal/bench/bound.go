package main

import "fmt"

// bound is what a figure of rabbitonce is held to: by itself, divided by another program's, or less that one.
type bound struct {
	measure measure
	limit   float64
	least   bool    // the figure must be at least the limit; else at most
	other   program // "" is none
	minus   bool    // subtract the other's figure instead of dividing by it
}

func atMost(m measure, limit float64) bound  { return bound{measure: m, limit: limit} }
func atLeast(m measure, limit float64) bound { return bound{measure: m, limit: limit, least: true} }

// over compares with another program's figure, as a ratio.
func (b bound) over(p program) bound {
	b.other = p
	return b
}

// above compares with another program's figure, as a difference.
func (b bound) above(p program) bound {
	b.other, b.minus = p, true
	return b
}

// verdict is a bound held against what was measured.
type verdict struct {
	What  string `json:"what"`
	Got   string `json:"got"`
	Bound string `json:"bound"`
	Met   bool   `json:"met"`
}

// judge returns the verdict on the medians of a step. A figure that is missing meets nothing.
func (b bound) judge(by map[program]figures) verdict {
	v := verdict{What: b.measure.title(), Bound: b.text()}
	value, measured := by[programRabbitonce][b.measure]
	if b.other != "" {
		other, otherMeasured := by[b.other][b.measure]
		measured = measured && otherMeasured && (b.minus || other > 0)
		if b.minus {
			v.What += " above the " + string(b.other) + "'s"
			value -= other
		} else {
			v.What += " / " + string(b.other)
			value /= other
		}
	}
	if !measured {
		v.Got = "not measured"
		return v
	}
	v.Got = b.format(value)
	v.Met = b.least && value >= b.limit || !b.least && value <= b.limit
	return v
}

func (b bound) text() string {
	if b.least {
		return "≥ " + fmt.Sprint(b.limit)
	}
	return "≤ " + fmt.Sprint(b.limit)
}

func (b bound) format(value float64) string {
	if b.other != "" {
		return fmt.Sprintf("%.2f", value)
	}
	return b.measure.format(value)
}
