package proxy

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"rabbitonce/proxy/internal/fakebroker"
	judge "rabbitonce/proxy/internal/faults/check"
)

// How long a run may take to settle after its last fault: a brake has pauses that grow.
const (
	simPatience       = 3 * time.Minute
	simPatienceBraked = 30 * time.Minute
)

// settle waits until all is published, no fault is left and the queues are empty.
func (w *world) settle() {
	last := time.Duration(0)
	for _, m := range w.schedule.messages {
		last = max(last, m.at[len(m.at)-1], m.conflict)
	}
	for _, f := range w.schedule.faults {
		last = max(last, f.at+f.span)
	}
	time.Sleep(last)
	patience := simPatience
	if w.schedule.braked {
		patience = simPatienceBraked
	}
	deadline := time.Now().Add(patience)
	for quiet := 0; ; time.Sleep(500 * time.Millisecond) {
		if quiet++; !w.isQuiet() {
			quiet = 0
		}
		if quiet > 8 { // and so is what was under way
			return
		}
		if time.Now().After(deadline) {
			w.failf("it has not settled within %v: %s", patience, w.whatIsLeft())
			return
		}
	}
}

func (w *world) isQuiet() bool {
	select {
	case <-w.published:
	default:
		return false
	}
	w.mu.Lock()
	over := w.faultsOver
	w.mu.Unlock()
	return over == len(w.schedule.faults) && w.broker.Uncommitted() == 0 && w.whatIsLeft() == ""
}

// whatIsLeft names the queues that messages are in, but for the dead letters.
func (w *world) whatIsLeft() string {
	var left []string
	for _, name := range w.broker.Queues() {
		ready, unacknowledged := w.broker.Count(name)
		if name != simQueue+".dead" && ready+unacknowledged > 0 {
			left = append(left, name)
		}
	}
	return strings.Join(left, ", ")
}

// end stops everything. What a goroutine would still wait for is an error that the bubble finds.
func (w *world) end() {
	w.mu.Lock()
	w.stopping = true
	slots := w.slots
	w.mu.Unlock()
	for _, r := range slots {
		r.stop()
	}
	if !endedWithin(allOf(&w.work), time.Hour) { // heartbeats would go on for ever, and time with them
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("schedule %d: a replica does not end:\n%s", w.schedule.seed, stacks[:runtime.Stack(stacks, true)]))
	}
	w.service.crash()
	w.broker.Close()
	w.net.Wait()
	time.Sleep(simLastWords) // what a process leaves undone at its end
}

// simLastWords is longer than any goroutine of a process that has ended goes on.
const simLastWords = 5 * time.Minute

// judge holds what was written down against the promises.
func (w *world) judge() simResult {
	h := &w.history
	s := w.schedule
	h.Queues = map[string]judge.Queue{simQueue: {Policy: s.policy, Timeout: s.timeout, Lease: s.lease, MaxAttempts: simMaxAttempts}}
	for _, r := range w.service.requests {
		h.Requests = append(h.Requests, *r)
	}
	for _, name := range w.broker.Queues() {
		for _, m := range w.broker.Messages(name) {
			id := judge.ID{Queue: simQueue, Value: m.ID}
			if name != simQueue+".dead" {
				h.Left = append(h.Left, judge.Left{ID: id, In: name})
				continue
			}
			h.Letters = append(h.Letters, w.deadLetterOf(id, m))
		}
	}
	for _, refusal := range w.broker.Refusals() {
		w.failf("the broker ended a channel: %s", refusal)
	}
	h.End = time.Now()
	result := simResult{problems: w.problems, story: w.story, report: judge.Check(h), took: time.Since(w.began)}
	for _, v := range result.report.Violations {
		result.problems = append(result.problems, v.String())
	}
	return result
}

func (w *world) deadLetterOf(id judge.ID, m fakebroker.Message) judge.Letter {
	reason, _ := m.Headers[headerPrefix+"reason"].(string)
	attempts, _ := m.Headers[headerPrefix+"attempts"].(int64)
	return judge.Letter{ID: id, Reason: reason, Attempts: int(attempts), Payload: judge.Payload{Body: string(m.Body)}}
}
