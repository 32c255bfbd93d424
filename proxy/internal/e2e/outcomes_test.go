package e2e

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// outcome is what the service answers to every POST of a message, and what becomes of the message. forward's tests have every status and every odd
// answer: here is what follows from them.
type outcome struct {
	name   string
	answer testkit.Action
	then   bool   // the third POST and those after it are answered 200
	posts  int    // of the message
	reason string // of its dead letter; "" is none
	status int    // in the dead letter, when it is not the answer's
}

// raw is an answer of these bytes, after which the connection ends.
func raw(head string, body ...string) testkit.Action {
	return testkit.Action{Raw: []byte(strings.ReplaceAll(head, "\n", "\r\n") + strings.Join(body, ""))}
}

func answer(status int, headers ...string) testkit.Action {
	a := testkit.Action{Status: status, Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		a.Header.Set(headers[i], headers[i+1])
	}
	return a
}

const (
	exhausted = "attempts-exhausted"
	unknown   = "unknown-outcome"
	fine      = "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"
	hints     = "HTTP/1.1 103 Early Hints\nLink: </a>\n\n"
)

// outcomes are told by replicas with RETRY_MAX_ATTEMPTS=2 and FORWARD_ON_UNKNOWN=deadletter.
func outcomes(elsewhere string) []outcome {
	return []outcome{
		{name: "200", answer: answer(200), posts: 1},
		{name: "204", answer: answer(204), posts: 1},
		{name: "299", answer: answer(299), posts: 1},
		{name: "302", answer: answer(302, "Location", elsewhere), posts: 2, reason: exhausted},
		{name: "303", answer: answer(303, "Location", elsewhere), posts: 2, reason: exhausted},
		{name: "304", answer: answer(304), posts: 2, reason: exhausted},
		{name: "307", answer: answer(307, "Location", elsewhere), posts: 2, reason: exhausted},
		{name: "308", answer: answer(308, "Location", elsewhere), posts: 2, reason: exhausted},
		{name: "400", answer: answer(400), posts: 1, reason: "rejected"},
		{name: "401", answer: answer(401), posts: 2, reason: exhausted},
		{name: "404", answer: answer(404), posts: 2, reason: exhausted},
		{name: "408", answer: answer(408), posts: 2, reason: exhausted},
		{name: "409", answer: answer(409), then: true, posts: 3},
		{name: "413", answer: answer(413), posts: 1, reason: "rejected"},
		{name: "422", answer: answer(422), posts: 1, reason: "rejected"},
		{name: "425", answer: answer(425), then: true, posts: 3},
		{name: "429", answer: answer(429), then: true, posts: 3},
		{name: "500", answer: answer(500), posts: 2, reason: exhausted},
		{name: "502", answer: answer(502), posts: 1, reason: unknown},
		{name: "503", answer: answer(503), then: true, posts: 3},
		{name: "504", answer: answer(504), posts: 1, reason: unknown},
		{name: "action-done", answer: answer(500, "Delivery-Action", "done"), posts: 1},
		{name: "action-defer", answer: answer(200, "Delivery-Action", "defer"), then: true, posts: 3},
		{name: "action-fail", answer: answer(200, "Delivery-Action", "fail"), posts: 2, reason: exhausted},
		{name: "action-reject", answer: answer(502, "Delivery-Action", "reject"), posts: 1, reason: "rejected"},
		{name: "action-nonsense", answer: answer(400, "Delivery-Action", "retry"), posts: 1, reason: "rejected"},
		{name: "retry-after-zero", answer: answer(503, "Retry-After", "0"), then: true, posts: 3},
		{name: "retry-after-past", answer: answer(503, "Retry-After", "Sat, 01 Mar 2025 12:00:30 GMT"), then: true, posts: 3},
		{name: "retry-after-nonsense", answer: answer(503, "Retry-After", "soon"), then: true, posts: 3},
		{name: "early-hints", answer: raw(hints + hints + fine), posts: 1},
		{name: "continue", answer: raw("HTTP/1.1 100 Continue\n\n" + fine), posts: 1},
		{name: "switching", answer: raw("HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: Upgrade\n\n"), posts: 1, reason: unknown, status: 101},
		{name: "endless", answer: raw("HTTP/1.1 200 OK\n\n", strings.Repeat("x", 256<<10)), posts: 1},
		{name: "cut-within-the-bound", answer: raw("HTTP/1.1 200 OK\nContent-Length: 70000\n\n", strings.Repeat("x", 60<<10)), posts: 1, reason: unknown, status: 200},
		{name: "chunked", answer: raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n"), posts: 1},
		{name: "broken-chunks", answer: raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nxx\nok\n"), posts: 1, reason: unknown, status: 200},
		{name: "gzip", answer: raw("HTTP/1.1 400 Bad\nContent-Encoding: gzip\nContent-Length: 9\n\n", "not gzip!"), posts: 1, reason: "rejected", status: 400},
		{name: "old", answer: raw("HTTP/1.0 200 OK\nContent-Length: 2\n\nok"), posts: 1},
		{name: "old-until-closed", answer: raw("HTTP/1.0 200 OK\n\nok"), posts: 1},
		{name: "old-refused", answer: raw("HTTP/1.0 400 Bad\n\nno"), posts: 1, reason: "rejected", status: 400},
		{name: "goaway", answer: testkit.Action{Raw: []byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01")}, posts: 1, reason: unknown},
		{name: "closes", answer: testkit.Action{Close: true}, posts: 1, reason: unknown},
		{name: "resets", answer: testkit.Action{Reset: true}, posts: 1, reason: unknown},
		{name: "closes-kept", answer: answer(200, "Connection", "close"), posts: 1},
	}
}

// Catches: an answer that is taken for another class; deferrals that count, failures that do not; a redirect that is followed; a request whose outcome
// is unknown made twice; a dead letter that does not say what the answer was.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	elsewhere, err := testkit.StartService(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = elsewhere.Close() })
	all := outcomes(elsewhere.URL + "/elsewhere")
	answers := map[string]outcome{}
	for _, o := range all {
		answers[o.name] = o
	}
	s := newStand(t, func(r testkit.Received) testkit.Action {
		o := answers[r.Key]
		if o.then && r.Number > 2 {
			return testkit.Action{}
		}
		return o.answer
	})
	elsewhere.Other(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	s.start(env{"FORWARD_ON_UNKNOWN": "deadletter", "RETRY_MAX_ATTEMPTS": "2", "RETRY_BACKOFF": "50ms", "PREFETCH": "40"})
	letters := 0
	for _, o := range all {
		if o.reason != "" {
			letters++
		}
		s.publish(o.name)
	}
	got := map[string]amqp.Delivery{}
	for _, l := range s.letters(letters) {
		got[l.MessageId] = l
	}
	s.settled()
	if n := elsewhere.Journal.Count(); n > 0 {
		t.Errorf("%d POSTs went where a redirect pointed to", n)
	}
	for _, o := range all {
		if n := len(s.service.Journal.ByKey(o.name)); n != o.posts {
			t.Errorf("%s: %d POSTs, want %d", o.name, n, o.posts)
		}
		l, dead := got[o.name]
		if dead != (o.reason != "") {
			t.Errorf("%s: dead letter: %t, want it: %t", o.name, dead, !dead)
		}
		if !dead {
			continue
		}
		want := amqp.Table{"reason": o.reason, "attempts": int64(o.posts), "status": nil}
		if status := cmp.Or(o.status, o.answer.Status); status != 0 {
			want["status"] = int64(status)
		}
		for name, value := range want {
			if l.Headers["x-rabbitonce-"+name] != value {
				t.Errorf("%s: x-rabbitonce-%s is %v, want %v", o.name, name, l.Headers["x-rabbitonce-"+name], value)
			}
		}
	}
	if text := got["gzip"].Headers["x-rabbitonce-response"]; text != "not gzip!" {
		t.Errorf("the answer that says that it is compressed: %v", text)
	}
	s.noLetters()
}

// Catches: a date in Retry-After that is not waited for, and a pause asked for that no message should have to wait.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	due := time.Now().Add(5 * time.Second).Truncate(time.Second)
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Number > 1:
			return testkit.Action{}
		case r.Key == "date":
			return answer(429, "Retry-After", due.UTC().Format(http.TimeFormat))
		}
		return answer(503, "Retry-After", "99999999999")
	})
	s.start(env{"RETRY_BACKOFF": "50ms", "RETRY_HOLD": "10s"})
	s.publish("date", "absurd")
	s.answered("date")
	s.settled()
	if posts := s.posts("date", 2); posts[1].Began.Before(due) {
		t.Errorf("the second POST came %v before the date", due.Sub(posts[1].Began))
	}
	first := s.posts("absurd", 1)[0]
	record := s.inspect("absurd")
	if pause := record.NotBefore.Sub(first.Ended); record.State != "waiting" || pause < time.Hour-time.Second || pause > 75*time.Minute {
		t.Errorf("%s, for %v", record.State, pause)
	}
	s.noLetters()
}

// recorded is what the tests read of a record.
type recorded struct {
	State     string
	Attempts  int
	NotBefore time.Time `json:"not_before"`
}

// inspect asks the program what is recorded of an ID.
func (s *stand) inspect(id string) recorded {
	s.t.Helper()
	c := exec.CommandContext(s.ctx, shared.Binary.Path, "inspect", "-json", s.queue, id)
	c.Env, c.Stderr = []string{}, os.Stderr
	for name, value := range s.redriveEnv() {
		c.Env = append(c.Env, name+"="+value)
	}
	out, err := c.Output()
	s.must(err)
	var found struct{ Records []recorded }
	s.must(json.Unmarshal(out, &found))
	if len(found.Records) != 1 {
		s.t.Fatalf("%d records: %s", len(found.Records), out)
	}
	return found.Records[0]
}

// Catches: a service that answers 409 to what it did before looked upon as busy for ever, without a word on the setting for it.
func TestConflictMeansDone(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusConflict} })
	settings := env{"RETRY_BACKOFF": "50ms", "RETRY_MAX_ATTEMPTS": "1"}
	r := s.start(settings)
	s.publish("a")
	line, err := r.Logs.Wait(s.ctx, func(l testkit.LogLine) bool {
		return l.Message() == "the service has answered 409 several times in a row"
	})
	s.must(err)
	const setting = "FORWARD_STATUS_DONE=200-299,409"
	if hint, _ := line.Fields["hint"].(string); !strings.Contains(hint, setting) {
		t.Errorf("log: %s", line.Text)
	}
	if hint := r.braked().Queues[0].Hint; !strings.Contains(hint, setting) {
		t.Errorf("hint in the status: %q", hint)
	}
	r.term()
	before := s.service.Journal.Count()
	if before < 3 {
		t.Errorf("the hint came after %d POSTs", before)
	}
	s.start(settings, env{"FORWARD_STATUS_DONE": "200-299,409"})
	s.publish("a", "b")
	s.settled()
	posts := s.posts("a", before+1)
	if last := posts[before]; last.Attempt != strconv.Itoa(before+1) || last.Unknown {
		t.Errorf("the last POST says attempt %s, unknown %t", last.Attempt, last.Unknown)
	}
	s.posts("b", 1)
	s.noLetters()
}
