package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

const (
	// promptly is how soon a loss is noticed of which a packet tells. A quiet machine needs some milliseconds.
	promptly = 3 * time.Second
	// heartbeat is the interval that the program asks for, and how long a broker may be silent.
	heartbeat = 10 * time.Second
	// shortHeartbeat is the most that the broker of TestSessionFaults agrees to. It decides after two to three of them that a client is gone.
	shortHeartbeat = 4 * time.Second
	// longestPause is the longest between two tries to open a session, jitter included.
	longestPause = 6 * time.Second
)

// lost wants the end of the consumer in the log: in these words, and not later than limit after since.
func (r *replica) lost(since time.Time, limit time.Duration, words ...string) {
	r.stand.t.Helper()
	r.lostFrom(r.stand.queue, since, limit, words...)
}

func (r *replica) lostFrom(queue string, since time.Time, limit time.Duration, words ...string) {
	r.stand.t.Helper()
	line, err := r.Logs.Wait(r.stand.ctx, func(l testkit.LogLine) bool {
		return l.Message() == "waiting" && l.Fields["part"] == "consumer" && l.Fields["queue"] == queue && loggedAt(l).After(since)
	})
	r.stand.must(err)
	if took := loggedAt(line).Sub(since); took > limit {
		r.stand.t.Errorf("the end of the consumer was noticed after %v, want %v at most: %s", took, limit, line.Text)
	}
	problem := fmt.Sprintf("%v; why: %v", line.Fields["error"], line.Fields["why"])
	if !holdsAll(problem, words) {
		r.stand.t.Errorf("the consumer ended with %q, want in it %q", problem, words)
	}
}

func loggedAt(l testkit.LogLine) time.Time {
	text, _ := l.Fields["time"].(string)
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// without waits until the status says in these words why there is no consumer, and wants the metric to agree. The loss has to last.
func (r *replica) without(words ...string) {
	r.stand.t.Helper()
	r.waitStatus("without a consumer: "+strings.Join(words, ", "), func(s status) bool {
		return s.State == "waiting" && slices.ContainsFunc(s.Missing, func(m string) bool {
			return strings.HasPrefix(m, "consumer of queue "+r.stand.queue) && holdsAll(m, words)
		})
	})
	samples, err := r.Metrics(r.stand.ctx)
	r.stand.must(err)
	if up := samples[`rabbitonce_session_up{queue="`+r.stand.queue+`"}`]; up != 0 {
		r.stand.t.Errorf("session_up is %v without a consumer", up)
	}
}

func holdsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// undisturbed wants that the queue's consumer never ended.
func (r *replica) undisturbed(queue string) {
	r.stand.t.Helper()
	for _, l := range r.Logs.Lines() {
		if l.Message() == "waiting" && l.Fields["part"] == "consumer" && l.Fields["queue"] == queue {
			r.stand.t.Errorf("the consumer of queue %s ended: %s", queue, l.Text)
		}
	}
}

// keepsSecret wants none of the passwords in what the program wrote and serves, neither verbatim nor as a URL or JSON holds them.
func (r *replica) keepsSecret(passwords ...string) {
	r.stand.t.Helper()
	texts := map[string]string{"the log": r.Logs.Text()}
	for _, path := range []string{"/status", "/metrics", "/"} {
		_, body, err := r.Get(r.stand.ctx, path)
		r.stand.must(err)
		texts[path] = string(body)
	}
	for where, text := range texts {
		for _, password := range passwords {
			quoted, err := json.Marshal(password)
			r.stand.must(err)
			for _, form := range []string{password, userinfo(password), strings.Trim(string(quoted), `"`)} {
				if strings.Contains(text, form) {
					r.stand.t.Errorf("%s shows the password %q", where, password)
				}
			}
		}
	}
}

// ctl runs the broker's own tool, one at a time: each starts an Erlang machine.
func (s *stand) ctl(args ...string) string {
	s.t.Helper()
	counting.Lock()
	defer counting.Unlock()
	out, err := s.broker.Ctl(s.ctx, args...)
	s.must(err)
	return out
}

// channel opens a channel on a connection of its own, for what the test kit's client does not do. Both end with the test, or with the returned function.
func (s *stand) channel() (*amqp.Channel, func()) {
	s.t.Helper()
	connection, err := amqp.DialConfig(s.broker.URL, amqp.Config{Dial: amqp.DefaultDial(10 * time.Second)})
	s.must(err)
	end := func() {
		if !connection.IsClosed() {
			s.closed(connection.Close())
		}
	}
	s.t.Cleanup(end)
	channel, err := connection.Channel()
	s.must(err)
	return channel, end
}

// keep takes n messages of the queue and keeps them, as another replica would.
func (s *stand) keep(n int, exclusive bool) *testkit.Holding {
	s.t.Helper()
	held, err := s.client.Hold(s.ctx, s.queue, n, exclusive)
	s.must(err)
	s.t.Cleanup(func() { s.closed(held.Release()) })
	return held
}

// writeFile writes a file that NAME_FILE can point to. Its content changes at once, as in a mounted secret.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}
