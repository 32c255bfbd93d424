package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// TestHealthPages reads each page, and finds that none can be written to.
func TestHealthPages(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request := func(method, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(within(t), method, b.HealthURL+path, strings.NewReader("body"))
		must(t, err)
		response, err := client.Do(r)
		must(t, err)
		must(t, response.Body.Close())
		return response
	}
	for path, contentType := range map[string]string{
		"/livez": "text/plain", "/startupz": "text/plain", "/readyz": "text/plain", "/status": "application/json", "/metrics": "text/plain",
	} {
		if r := request(http.MethodGet, path); r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), contentType) {
			t.Errorf("GET %s: %s, %s", path, r.Status, r.Header.Get("Content-Type"))
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if r := request(method, path); r.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s, want 405", method, path, r.Status)
			}
		}
	}
	for _, path := range []string{"/debug/pprof/", "/drain", "/quit", "/queues", "/../etc/passwd"} {
		if r := request(http.MethodGet, path); r.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %s, want 404", path, r.Status)
		}
	}
	s := b.waitState("consuming")
	if len(s.Missing) != 0 || !s.Store.Up || len(s.Queues) != 1 || s.Version == "" {
		t.Errorf("/status: %+v", s)
	}
	if q := s.Queues[0]; q.Name != b.queue || !q.Consumer.Up || !q.Service.Up || !q.DeadLetters.Up {
		t.Errorf("/status of the queue: %+v", q)
	}
}

// TestStatusShowsWork counts what is under way and what waits.
func TestStatusShowsWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"FORWARD_CONCURRENCY": "2", "PREFETCH": "5"})
	finish := make(chan struct{})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Wait: finish} })
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		b.publish(text(id, "body"))
	}
	type counts struct {
		InFlight int `json:"posts_in_flight"`
		Waiting  int
	}
	must(t, b.WaitFor(within(t), "/status", func(_ int, body []byte) bool {
		var s struct{ Queues []counts }
		return json.Unmarshal(body, &s) == nil && s.Queues[0] == counts{InFlight: 2, Waiting: 3}
	}))
	b.waitMetrics(func(m samples) bool {
		return m[`rabbitonce_posts_in_flight{queue="`+b.queue+`"}`] == 2 && m[`rabbitonce_waiting{queue="`+b.queue+`"}`] == 3
	})
	close(finish)
	b.waitOutcomes(map[string]float64{"done": 6})
	b.finish()
}

// TestDraining: from SIGTERM on the pod takes no new traffic, and what is under way is finished.
func TestDraining(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	finish := make(chan struct{})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Wait: finish} })
	b.publish(text("one", "body"))
	must(t, b.service.Journal.WaitBegun(within(t), "one", 1))
	must(t, b.Term())
	must(t, b.WaitFor(within(t), "/readyz", func(code int, _ []byte) bool { return code == http.StatusServiceUnavailable }))
	b.waitState("draining")
	if code, _, err := b.Get(within(t), "/livez"); err != nil || code != 200 {
		t.Errorf("/livez while draining: %d, %v", code, err)
	}
	close(finish)
	code, err := b.Wait(within(t))
	must(t, err)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.stopped = true
	b.checkLogs()
	if ready, _, err := shared.client.Depth(b.queue); err != nil || ready != 0 {
		t.Errorf("%d messages left (%v)", ready, err)
	}
	if e := b.service.Journal.Entries(); len(e) != 1 || e[0].Status != 200 {
		t.Errorf("POSTs: %+v", e)
	}
}

// TestHealthcheck is what an image without a shell runs as its probe.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	address := strings.TrimPrefix(b.HealthURL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for healthAddr, want := range map[string]int{address: 0, ":" + port: 0, "0.0.0.0:" + port: 0, "127.0.0.1:1": 1} {
		began := time.Now()
		code, output := execute(t, b.env().with(env{"HEALTH_ADDR": healthAddr}), "healthcheck")
		if code != want || time.Since(began) > 20*time.Second {
			t.Errorf("HEALTH_ADDR=%s: exit code %d, want %d:\n%s", healthAddr, code, want, output)
		}
	}
	code, output := execute(t, b.env().with(env{"HEALTH_ADDR": address}))
	if code != 1 || !strings.Contains(output, "HEALTH_ADDR") || !strings.Contains(output, "in use") {
		t.Errorf("a second process on one HEALTH_ADDR: exit code %d:\n%s", code, output)
	}
}

// TestCommands need no environment.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"version"}, 0, "rabbitonce dev"},
		{[]string{"--version"}, 0, "rabbitonce dev"},
		{[]string{"help"}, 0, "usage: rabbitonce"},
		{[]string{"frobnicate"}, 2, "usage: rabbitonce"},
		{[]string{"--frobnicate"}, 2, "usage: rabbitonce"},
		{[]string{"run", "fast"}, 2, "usage: rabbitonce"},
	} {
		code, output := execute(t, nil, c.args...)
		if code != c.code || !strings.Contains(output, c.says) {
			t.Errorf("%q: exit code %d, want %d; output:\n%s", c.args, code, c.code, output)
		}
	}
	code, output := execute(t, plausible().with(env{"SHUTDOWN_GRACE": "0s"}), "run")
	if code != 2 || !strings.Contains(output, "SHUTDOWN_GRACE") {
		t.Errorf("run is not the default command: exit code %d\n%s", code, output)
	}
}
