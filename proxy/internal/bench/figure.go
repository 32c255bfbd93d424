package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// measure names a figure of a run.
type measure string

const (
	speed         measure = "speed"       // messages a second, from the first POST to the end
	cost          measure = "cpu"         // microseconds of the program's CPU a message, its start included
	peak          measure = "memory"      // MB, the largest resident set
	startTime     measure = "start"       // seconds from the start of the process to the first POST
	binarySize    measure = "binary"      // MB
	medianLatency measure = "median"      // milliseconds from publishing to POST
	tailLatency   measure = "p99"         // likewise
	idleCPU       measure = "idle-cpu"    // per cent of a core
	limitShare    measure = "limit"       // per cent of what concurrency and the service's time allow
	serviceTime   measure = "service"     // milliseconds that the service held a request, on average
	speedKept     measure = "speed-kept"  // speed of the second half of a run / that of the first
	memoryGrown   measure = "memory-kept" // memory in the second half of a run / that in the first
)

// title and format are what people read.
func (m measure) title() string {
	switch m {
	case speed:
		return "messages/s"
	case cost:
		return "CPU µs/message"
	case peak:
		return "peak memory MB"
	case startTime:
		return "first POST after s"
	case binarySize:
		return "binary MB"
	case medianLatency:
		return "median ms"
	case tailLatency:
		return "p99 ms"
	case idleCPU:
		return "CPU % of a core"
	case limitShare:
		return "% of the limit"
	case serviceTime:
		return "service ms"
	case speedKept:
		return "speed, second half / first"
	case memoryGrown:
		return "memory, second half / first"
	}
	return string(m)
}

func (m measure) format(value float64) string {
	switch m {
	case speed:
		return thousands(value)
	case cost, peak, binarySize, limitShare, idleCPU:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// thousands writes a whole number as 12,345.
func thousands(value float64) string {
	text := fmt.Sprintf("%.0f", value)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// figures are what one run, or the median of several, came to.
type figures map[measure]float64

// medians are the medians of each measure. There may be no runs at all.
func medians(runs []figures) figures {
	values := map[measure][]float64{}
	for _, run := range runs {
		for m, value := range run {
			values[m] = append(values[m], value)
		}
	}
	result := figures{}
	for m, all := range values {
		result[m] = median(all)
	}
	return result
}

// line is one run in words: the columns first, in their order.
func (f figures) line(columns []measure) string {
	var words []string
	for _, m := range columns {
		if value, measured := f[m]; measured {
			words = append(words, fmt.Sprintf("%8s %s", m.format(value), m.title()))
		}
	}
	if len(words) == 0 {
		return fmt.Sprint("nothing of ", slices.Sorted(maps.Keys(f)))
	}
	return strings.Join(words, "  ")
}
