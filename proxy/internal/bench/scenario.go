package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// program is what is measured.
type program string

const (
	programBaseline   program = "baseline"
	programFloor      program = "floor"
	programRabbitonce program = "rabbitonce"
)

// load is what a program is given to do.
type load struct {
	messages    int
	copies      int           // per cent of the messages that are published once more
	size        int           // bytes of a body
	classic     bool          // a classic queue instead of a quorum queue
	concurrency int           // FORWARD_CONCURRENCY
	prefetch    int           // PREFETCH
	replicas    int           // processes on the same queue
	service     time.Duration // how long the service works on a request
	records     int           // in Redis beforehand
	rate        int           // messages a second, published while the program runs; 0 publishes all before it starts
	idle        time.Duration // nothing is published: how long to look at the program
	tenths      bool          // measure each tenth of the run too
	gogc        int           // GOGC of rabbitonce; 0 leaves it unset
}

// total is how many deliveries there are, copies included.
func (l load) total() int { return l.messages + l.messages*l.copies/100 }

// step is one load of a scenario.
type step struct {
	label string // "" when there is only one
	load  load
}

// scenario is a named measurement.
type scenario struct {
	name     string
	about    string
	quick    bool      // measured unless others are chosen
	once     bool      // one round, however many are asked for
	programs []program // in the order in which they run
	steps    []step
	axis     string // what the steps grow by; "" when there is only one
	columns  []measure
	bounds   []bound // of the first step
}

// standard is the load that the bounds are about: 1 KiB, a quorum queue, concurrency 64, prefetch 512.
func standard() load {
	return load{messages: 20_000, size: 1 << 10, concurrency: 64, prefetch: 512, replicas: 1}
}

// with returns the load, changed.
func (l load) with(change func(*load)) load {
	change(&l)
	return l
}

// The programs of a scenario, in the order in which they run.
var (
	alone = []program{programRabbitonce}
	pair  = []program{programBaseline, programRabbitonce}
	trio  = []program{programBaseline, programFloor, programRabbitonce}
)

var (
	usual     = []measure{speed, cost, peak}
	latencies = []measure{medianLatency, tailLatency, cost, peak}
)

// allScenarios are those with bounds, and then those that show how cost grows.
func allScenarios() []scenario {
	return slices.Concat(boundedScenarios(), growthScenarios())
}

func boundedScenarios() []scenario {
	one := func(l load) []step { return []step{{load: l}} }
	return []scenario{
		{
			name: "standard", about: "1 KiB, quorum queue, concurrency 64, prefetch 512", quick: true,
			programs: trio, steps: one(standard()), columns: usual, bounds: loadBounds(),
		},
		{
			name: "dups", about: "the same with 30% duplicates, each published 1,000 messages after its original", quick: true,
			programs: trio, steps: one(standard().with(func(l *load) { l.copies = 30 })), columns: usual, bounds: loadBounds(),
		},
		{
			name: "small-prefetch", about: "the same with concurrency 10 and the prefetch that is its default, 40",
			programs: trio, steps: one(standard().with(func(l *load) { l.concurrency, l.prefetch = 10, 40 })), columns: usual, bounds: loadBounds(),
		},
		{
			name: "small-bodies", about: "the same with bodies of 64 bytes",
			programs: trio, steps: one(standard().with(func(l *load) { l.size = 64 })), columns: usual, bounds: loadBounds(),
		},
		{
			name: "large-bodies", about: "the same with bodies of 64 KiB, 5,000 messages",
			programs: trio, steps: one(standard().with(func(l *load) { l.size, l.messages = 64<<10, 5_000 })), columns: usual, bounds: loadBounds(),
		},
		{
			name: "classic", about: "the same with a classic queue", quick: true,
			programs: pair, steps: one(standard().with(func(l *load) { l.classic = true })), columns: usual,
			bounds: []bound{atLeast(speed, 1).over(programBaseline), atMost(cost, 1).over(programBaseline)},
		},
		{
			name: "slow-service", about: "a service that takes 20 ms, concurrency 64: at most 64 / 0.020 s = 3,200 a second", quick: true,
			programs: pair, steps: one(standard().with(func(l *load) { l.service = 20 * time.Millisecond })),
			columns: []measure{speed, limitShare, serviceTime, cost, peak}, bounds: []bound{atLeast(limitShare, 97)},
		},
		{
			name: "latency", about: "100 messages a second for 10 seconds, from publishing to POST", quick: true,
			programs: pair, steps: one(standard().with(func(l *load) { l.messages, l.rate = 1_000, 100 })), columns: latencies,
			bounds: []bound{atMost(medianLatency, 1).above(programBaseline), atMost(tailLatency, 5).above(programBaseline)},
		},
		{
			name: "idle", about: "an empty queue for 20 seconds", quick: true, once: true,
			programs: alone, steps: one(standard().with(func(l *load) { l.messages, l.idle = 0, 20*time.Second })),
			columns: []measure{peak, idleCPU}, bounds: []bound{atMost(peak, 15), atMost(idleCPU, 0.5)},
		},
		{
			name: "start", about: "from the start of the process to its first POST, messages waiting", quick: true,
			programs: alone, steps: one(standard().with(func(l *load) { l.messages = 1_000 })),
			columns: []measure{startTime, binarySize}, bounds: []bound{atMost(startTime, 0.5), atMost(binarySize, 20)},
		},
		{
			name: "backlog", about: "1,000,000 messages wait; speed and memory by tenth of the run", once: true,
			programs: alone, steps: one(standard().with(func(l *load) { l.messages, l.tenths = 1_000_000, true })),
			columns: []measure{speed, cost, peak, speedKept, memoryGrown},
			bounds:  []bound{atLeast(speedKept, 0.9), atMost(memoryGrown, 1.1), atMost(peak, 35)},
		},
	}
}

// loadBounds are those of a run under full load.
func loadBounds() []bound {
	return []bound{
		atMost(cost, 0.75).over(programBaseline), atMost(cost, 1.6).over(programFloor), atLeast(speed, 1.5).over(programBaseline), atMost(peak, 35),
	}
}

func growthScenarios() []scenario {
	return []scenario{
		{
			name: "growth-concurrency", about: "requests at once, with a prefetch of 8 times as many", axis: "concurrency",
			programs: pair, columns: usual,
			steps: steps([]int{1, 4, 16, 64, 256}, strconv.Itoa, func(n int, l *load) {
				l.concurrency, l.prefetch = n, 8*n
				l.messages = min(l.messages, 5_000*n) // one at a time is slow
			}),
		},
		{
			name: "growth-prefetch", about: "prefetch, with concurrency 64", axis: "prefetch",
			programs: pair, columns: usual,
			steps: steps([]int{64, 128, 256, 512, 960}, strconv.Itoa, func(n int, l *load) { l.prefetch = n }),
		},
		{
			name: "growth-size", about: "bytes of a body", axis: "body",
			programs: pair, columns: usual,
			steps: steps([]int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10}, bytesText, func(n int, l *load) {
				l.size = n
				l.messages = min(l.messages, 320<<20/n) // no more than fits any disk
			}),
		},
		{
			name: "growth-dups", about: "duplicates, per cent of the messages; speed and cost count every delivery", axis: "duplicates",
			programs: pair, columns: usual,
			steps: steps([]int{0, 15, 30, 45, 60}, percentText, func(n int, l *load) { l.copies = n }),
		},
		{
			name: "growth-replicas", about: "processes on one queue; cost is that of all, memory that of the largest", axis: "replicas",
			programs: alone, columns: usual,
			steps: steps([]int{1, 2, 3, 4}, strconv.Itoa, func(n int, l *load) { l.replicas = n }),
		},
		{
			name: "growth-records", about: "records that Redis holds beforehand", axis: "records",
			programs: alone, columns: usual,
			steps: steps([]int{0, 1_000_000, 5_000_000}, millionsText, func(n int, l *load) { l.records = n }),
		},
		{
			name: "growth-gogc", about: "GOGC of the process", axis: "GOGC",
			programs: alone, columns: usual,
			steps: steps([]int{0, 50, 100, 200, 400}, gogcText, func(n int, l *load) { l.gogc = n }),
		},
	}
}

// steps are standard loads that differ in one number.
func steps(numbers []int, label func(int) string, change func(n int, l *load)) []step {
	var all []step
	for _, n := range numbers {
		all = append(all, step{label: label(n), load: standard().with(func(l *load) { change(n, l) })})
	}
	return all
}

func bytesText(n int) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func percentText(n int) string { return fmt.Sprintf("%d%%", n) }

func millionsText(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d M", n/1_000_000)
}

func gogcText(n int) string {
	if n == 0 {
		return "unset"
	}
	return strconv.Itoa(n)
}

func printScenarios(out io.Writer) {
	for _, s := range allScenarios() {
		mark := ""
		if s.quick {
			mark = " (quick)"
		}
		_, _ = fmt.Fprintf(out, "%-20s %s%s\n", s.name, s.about, mark)
	}
}
