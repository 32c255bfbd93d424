package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"rabbitonce/proxy/internal/testkit"
)

// replica is a running program of a stand.
type replica struct {
	*testkit.Replica
	stand *stand
}

// status is what the tests read of GET /status.
type status struct {
	State   string
	Missing []string
}

// kill ends the process with SIGKILL.
func (r *replica) kill() {
	r.stand.t.Helper()
	r.stand.must(r.Kill())
}

// killAt waits for a barrier and kills the process there, before what the barrier holds goes anywhere.
func (r *replica) killAt(b *testkit.Barrier) {
	r.stand.t.Helper()
	r.stand.must(b.Wait(r.stand.ctx))
	r.kill()
	b.Drop()
}

// term sends SIGTERM and wants exit code 0.
func (r *replica) term() {
	r.stand.t.Helper()
	r.stand.must(r.Term())
	code, err := r.Wait(r.stand.ctx)
	r.stand.must(err)
	if code != 0 {
		r.stand.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// freeze sends SIGSTOP and returns when every thread has stopped: the signal alone takes a moment.
func (r *replica) freeze() {
	r.stand.t.Helper()
	r.stand.must(r.Pause())
	r.stand.eventually("replica has stopped", func() (bool, error) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", r.PID()))
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil || !strings.Contains(string(text), ") T ") {
				return false, err
			}
		}
		return len(threads) > 0, err
	})
}

// waitConsuming waits until nothing is missing.
func (r *replica) waitConsuming() {
	r.stand.t.Helper()
	r.waitStatus("consuming", func(s status) bool { return s.State == "consuming" })
}

// waitMissing waits until the status says that a part is missing, alive and well otherwise.
func (r *replica) waitMissing(part string) {
	r.stand.t.Helper()
	r.waitStatus("without "+part, func(s status) bool {
		return s.State == "waiting" && strings.Contains(strings.Join(s.Missing, "\n"), part)
	})
	code, _, err := r.Get(r.stand.ctx, "/livez")
	r.stand.must(err)
	if code != http.StatusOK {
		r.stand.t.Errorf("/livez answers %d while waiting for %s", code, part)
	}
}

func (r *replica) waitStatus(what string, holds func(status) bool) {
	r.stand.t.Helper()
	var last status
	r.stand.eventually("replica is "+what, func() (bool, error) {
		last = status{}
		if err := r.Status(r.stand.ctx, &last); err != nil {
			return false, err
		}
		return holds(last), fmt.Errorf("status %+v", last)
	})
}

// waitMetric waits until a sample is at least so much. Labels are in alphabetic order; {queue} stands for the stand's queue.
func (r *replica) waitMetric(sample string, least float64) {
	r.stand.t.Helper()
	sample = strings.ReplaceAll(sample, "{queue}", r.stand.queue)
	r.stand.eventually(fmt.Sprintf("%s >= %v", sample, least), func() (bool, error) {
		samples, err := r.Metrics(r.stand.ctx)
		if err != nil {
			return false, err
		}
		got, known := samples[sample]
		return known && got >= least, fmt.Errorf("it is %v (known: %t)", got, known)
	})
}

// waitCopies waits until so many copies were kept waiting, be it for a request or for the next attempt.
func (r *replica) waitCopies(least float64) {
	r.stand.t.Helper()
	sample := func(kind string) string {
		return fmt.Sprintf("rabbitonce_duplicates_total{kind=%q,queue=%q}", kind, r.stand.queue)
	}
	r.stand.eventually("copies that wait", func() (bool, error) {
		samples, err := r.Metrics(r.stand.ctx)
		got := samples[sample("busy")] + samples[sample("waiting")]
		return got >= least, errors.Join(err, fmt.Errorf("%v of %v", got, least))
	})
}

// waitLog waits for a log line whose fields have these values.
func (r *replica) waitLog(message string, fields ...string) {
	r.stand.t.Helper()
	_, err := r.Logs.Wait(r.stand.ctx, func(l testkit.LogLine) bool {
		if l.Message() != message {
			return false
		}
		for i := 0; i < len(fields); i += 2 {
			if l.Fields[fields[i]] != fields[i+1] {
				return false
			}
		}
		return true
	})
	r.stand.must(err)
}
