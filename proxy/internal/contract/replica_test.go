package contract

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// replica is the program as a process, and what is checked of every one when it ends.
type replica struct {
	*testkit.Replica
	t       *testing.T
	text    bool // LOG_FORMAT=text
	stopped bool
}

// launch starts the program and waits for nothing. It is stopped with SIGTERM at the end of the test.
func launch(t *testing.T, e env) *replica {
	t.Helper()
	started, err := testkit.StartReplica(shared.binary.Path, env{"ADMIN_ADDR": ""}.with(e))
	must(t, err)
	r := &replica{Replica: started, t: t, text: e["LOG_FORMAT"] == "text"}
	t.Cleanup(func() {
		r.stop()
		must(t, r.Close())
	})
	return r
}

// stop ends the replica in good order and checks all that it wrote and served.
func (r *replica) stop() {
	r.t.Helper()
	if r.stopped {
		return
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, path := range []string{"/status", "/metrics"} {
		_, body, err := r.Get(ctx, path)
		if err != nil {
			r.t.Errorf("the replica did not live to the end of the test: %v\n%s", err, r.Logs.Tail(20))
			return
		}
		assertNoSecret(r.t, path, string(body))
	}
	must(r.t, r.Term())
	code, err := r.Wait(ctx)
	must(r.t, err)
	if code != 0 {
		r.t.Errorf("exit code %d after SIGTERM:\n%s", code, r.Logs.Tail(20))
	}
	r.checkLogs()
	if r.t.Failed() {
		r.t.Logf("the end of the replica's log:\n%s", r.Logs.Tail(15))
	}
}

func (r *replica) checkLogs() {
	r.t.Helper()
	output := r.Logs.Text()
	assertNoSecret(r.t, "the log", output)
	if strings.Contains(output, "DATA RACE") {
		r.t.Errorf("data race:\n%s", output)
	}
	for _, line := range r.Logs.Lines() {
		if (line.Fields == nil) != r.text {
			r.t.Errorf("a log line in the wrong format: %s", line.Text)
		}
	}
}

// status is what the tests read of /status.
type status struct {
	Version string
	State   string
	Missing []string
	Store   partStatus
	Queues  []queueStatus
}

type queueStatus struct {
	Name                  string
	Consumer, Service     partStatus
	DeadLetters           partStatus `json:"dead_letter_publishing"`
	DeadLetterQueue       string     `json:"dead_letter_queue"`
	Prefetch, Concurrency int
}

type partStatus struct {
	Why     string
	Up      bool
	Problem string
}

// waitStatus waits until the condition holds for /status.
func (r *replica) waitStatus(condition func(status) bool) status {
	r.t.Helper()
	var last status
	must(r.t, r.WaitFor(within(r.t), "/status", func(_ int, body []byte) bool {
		last = status{}
		return json.Unmarshal(body, &last) == nil && condition(last)
	}))
	return last
}

func (r *replica) waitState(state string) status {
	r.t.Helper()
	return r.waitStatus(func(s status) bool { return s.State == state })
}

// waitMissing waits until /status says that something is missing, in words that hold all of these; the log says the same,
// and no probe fails for it.
func (r *replica) waitMissing(words ...string) {
	r.t.Helper()
	holdsAll := func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
	s := r.waitStatus(func(s status) bool { return slices.ContainsFunc(s.Missing, holdsAll) })
	if s.State != "waiting" {
		r.t.Errorf("state %q, want waiting", s.State)
	}
	_, err := r.Logs.Wait(within(r.t), func(l testkit.LogLine) bool {
		problem, _ := l.Fields["error"].(string)
		part, _ := l.Fields["part"].(string)
		return l.Fields["level"] == "WARN" && holdsAll(part+": "+problem)
	})
	must(r.t, err)
	for _, probe := range []string{"/livez", "/readyz", "/startupz"} {
		if code, body, err := r.Get(within(r.t), probe); err != nil || code != 200 {
			r.t.Errorf("%s answers %d %s (%v) while something is missing, want 200", probe, code, body, err)
		}
	}
}

// warnings are the messages of the log lines at level WARN.
func (r *replica) warnings() []string {
	var all []string
	for _, line := range r.Logs.Find(func(l testkit.LogLine) bool { return l.Fields["level"] == "WARN" }) {
		all = append(all, line.Message())
	}
	return all
}

// samples are the samples of /metrics by full name, labels included.
type samples map[string]float64

func (r *replica) metrics() samples {
	r.t.Helper()
	m, err := r.Metrics(within(r.t))
	must(r.t, err)
	return m
}

// waitMetrics waits until the condition holds for /metrics.
func (r *replica) waitMetrics(condition func(samples) bool) {
	r.t.Helper()
	must(r.t, r.WaitFor(within(r.t), "/metrics", func(int, []byte) bool {
		m, err := r.Metrics(within(r.t))
		return err == nil && condition(m)
	}))
}

// byLabel returns a metric's samples of one queue by the value of another label.
func (m samples) byLabel(metric, queue, label string) map[string]float64 {
	values := map[string]float64{}
	for name, value := range m {
		rest, ok := strings.CutPrefix(name, metric+"{")
		if !ok || !strings.Contains(rest, `queue="`+queue+`"`) {
			continue
		}
		if _, after, ok := strings.Cut(rest, label+`="`); ok {
			labelled, _, _ := strings.Cut(after, `"`)
			values[labelled] = value
		}
	}
	return values
}

// sum adds up a counter of one queue over all other labels.
func (m samples) sum(metric, queue string) float64 {
	var sum float64
	for name, value := range m {
		if strings.HasPrefix(name, metric+"{") && strings.Contains(name, `queue="`+queue+`"`) {
			sum += value
		}
	}
	return sum
}

// execute runs the program to its end with exactly this environment and returns exit code and output.
func execute(t *testing.T, e env, args ...string) (code int, output string) {
	t.Helper()
	r, err := testkit.StartReplica(shared.binary.Path, env{"ADMIN_ADDR": ""}.with(e), args...)
	must(t, err)
	defer func() { must(t, r.Close()) }()
	code, err = r.Wait(within(t))
	must(t, err)
	output = r.Logs.Text()
	assertNoSecret(t, "the output", output)
	return code, output
}

// sortedNames returns the keys of a map in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
