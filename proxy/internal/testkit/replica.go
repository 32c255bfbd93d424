package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Replica is the program running as a process of its own.
type Replica struct {
	HealthURL string // http://127.0.0.1:PORT
	Logs      *LogCapture

	port    port
	process *process
}

// Alarms returns what the program has printed that no test may pass over: the words of a race or a crash.
func (r *Replica) Alarms() []string {
	text := r.Logs.Text()
	return slices.DeleteFunc([]string{"DATA RACE", "panic:", "fatal error:"}, func(words string) bool { return !strings.Contains(text, words) })
}

// StartReplica runs the binary with exactly this environment (and PATH). Unless env says otherwise, HEALTH_ADDR is a
// free loopback port. It does not wait for anything: see WaitReady.
func StartReplica(binary string, env map[string]string, args ...string) (*Replica, error) {
	reserved, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("start replica: %w", err)
	}
	variables := map[string]string{
		"PATH": os.Getenv("PATH"), "HEALTH_ADDR": reserved.address(),
	}
	maps.Copy(variables, env)
	read, write, err := os.Pipe()
	if err != nil {
		reserved.release()
		return nil, fmt.Errorf("start replica: %w", err)
	}
	p, err := command{name: "replica", path: binary, args: args, env: environ(variables), out: write}.start()
	_ = write.Close()
	if err != nil {
		reserved.release()
		_ = read.Close()
		return nil, err
	}
	return &Replica{
		HealthURL: "http://" + variables["HEALTH_ADDR"], Logs: captureLog(read), port: reserved, process: p,
	}, nil
}

func environ(variables map[string]string) []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// Get asks the health listener for a path, such as /status.
func (r *Replica) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.HealthURL+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", path, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", path, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// Status decodes GET /status into the value.
func (r *Replica) Status(ctx context.Context, into any) error {
	_, body, err := r.Get(ctx, "/status")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode status: %w", err)
	}
	return nil
}

// Metrics returns the samples of GET /metrics by their full name, labels included, as they are written there.
func (r *Replica) Metrics(ctx context.Context) (map[string]float64, error) {
	_, body, err := r.Get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	samples := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			samples[line[:at]] = value
		}
	}
	return samples, nil
}

// WaitReady returns nil once GET /readyz answers 200.
func (r *Replica) WaitReady(ctx context.Context) error {
	return r.WaitFor(ctx, "/readyz", func(status int, _ []byte) bool { return status == http.StatusOK })
}

// WaitFor returns nil once the condition holds for what GET path answers. It gives up when the process ends.
func (r *Replica) WaitFor(ctx context.Context, path string, condition func(status int, body []byte) bool) error {
	err := r.process.await(ctx, func() error {
		status, body, err := r.Get(ctx, path)
		if err == nil && !condition(status, body) {
			err = fmt.Errorf("%s answers %d %s", path, status, body)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w; the end of its log:\n%s", path, err, r.Logs.Tail(tailLines))
	}
	return nil
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (r *Replica) Kill() error { return r.process.kill() }

// Term sends SIGTERM and returns at once.
func (r *Replica) Term() error { return r.process.signal(syscall.SIGTERM) }

// Wait returns the exit code once the process has ended: -1 when a signal ended it.
func (r *Replica) Wait(ctx context.Context) (int, error) {
	select {
	case <-r.process.done:
		r.Logs.wait()
		return r.process.child.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for replica: %w; the end of its log:\n%s", context.Cause(ctx), r.Logs.Tail(tailLines))
	}
}

// Exited is closed when the process has ended.
func (r *Replica) Exited() <-chan struct{} { return r.process.done }

// Pause stops the process without ending it.
func (r *Replica) Pause() error { return r.process.signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (r *Replica) Resume() error { return r.process.signal(syscall.SIGCONT) }

// PID is the process id, for those who measure.
func (r *Replica) PID() int { return r.process.child.Process.Pid }

// Close kills the process if it still runs. The logs stay readable.
func (r *Replica) Close() error {
	err := r.Kill()
	r.Logs.wait()
	r.port.release()
	return err
}
