package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// told is what `inspect --json` prints.
type told struct {
	Queue, ID string
	Records   []toldRecord
}

type toldRecord struct {
	Source, Key, State, Reason, Where   string
	LastOutcome                         string `json:"last_outcome"`
	DeadID                              string `json:"dead_id"`
	EverUnknown                         bool   `json:"ever_unknown"`
	Attempts, Deferred, Unknown, Status int
	Now, Expires                        time.Time
	FirstClaimed                        time.Time  `json:"first_claimed"`
	Lease                               *time.Time `json:"lease_until"`
	Request                             *time.Time `json:"request_deadline"`
	Due                                 *time.Time `json:"not_before"`
}

// inspect runs the command with the bench's environment.
func (b *bench) inspect(settings env, args ...string) (code int, output string) {
	b.t.Helper()
	return execute(b.t, b.env().with(settings), append([]string{"inspect", b.queue}, args...)...)
}

// record demands that there is one record of an ID.
func (b *bench) record(settings env, id string, args ...string) toldRecord {
	b.t.Helper()
	code, output := b.inspect(settings, append(args, "--json", "--", id)...)
	var t told
	if err := json.Unmarshal([]byte(output), &t); code != 0 || err != nil || len(t.Records) != 1 || t.Queue != b.queue || t.ID != id {
		b.t.Fatalf("inspect: exit code %d, %v\n%s", code, err, output)
	}
	return t.Records[0]
}

func (b *bench) forget(settings env, want int, words []string, args ...string) {
	b.t.Helper()
	code, output := execute(b.t, b.env().with(settings), append([]string{"forget", b.queue}, args...)...)
	if code != want {
		b.t.Fatalf("forget: exit code %d, want %d:\n%s", code, want, output)
	}
	says(b.t, output, words...)
}

func says(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(output, w) {
			t.Errorf("the output does not say %q:\n%s", w, output)
		}
	}
}

// TestInspectAndForgetDone: what is done is told, and forgotten only when that is asked for in so many words.
func TestInspectAndForgetDone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.answer(201, "")
	b.publish(text("one", "secret body"))
	b.waitOutcomes(map[string]float64{"done": 1})
	r := b.record(nil, "one")
	if r.State != "done" || r.Status != 201 || r.Attempts != 1 || r.Source != "message-id" || r.EverUnknown || r.Key != b.queue+"://"+b.queue+":one" {
		t.Errorf("record: %+v", r)
	}
	if left := r.Expires.Sub(r.Now); left < 47*time.Hour || left > 48*time.Hour {
		t.Errorf("expires in %v, want 48h", left)
	}
	code, output := b.inspect(nil, "one")
	if code != 0 || strings.Contains(output, "secret body") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	says(t, output, "done, HTTP status 201", "in no queue", r.Key, "each change makes it 48h")

	b.forget(nil, 1, []string{"refused", "--done", "second time"}, "one")
	b.forget(nil, 1, []string{"refused", "--done"}, "one", "--force")
	b.publish(text("one", "secret body"))
	b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
	b.forget(nil, 0, []string{"forgotten", "SECOND TIME", "It was:", "done, HTTP status 201"}, "one", "--done")
	b.publish(text("one", "secret body"))
	b.waitOutcomes(map[string]float64{"done": 2, "duplicate": 1})
	b.finish()
}

// TestInspectNothing says what it means, and where was looked.
func TestInspectNothing(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	code, output := b.inspect(nil, "never")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	says(t, output, "nothing is recorded", "message-id", "header:x-message-id", "%from=header%3Ax-message-id:never", "processed as if it were new", "48h", b.queue+".dead")
	code, output = b.inspect(nil, "never", "--json")
	if code != 1 || !strings.Contains(output, `"records": []`) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	b.forget(nil, 1, []string{"nothing to forget", "message-id"}, "never")
	b.forget(nil, 1, []string{`"forgotten": false`, `"problem"`, "nothing to forget"}, "never", "--json")
}

// TestInspectAndForgetAtWork: a request is under way; nobody runs a copy beside it by mistake.
func TestInspectAndForgetAtWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	release := make(chan struct{})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Wait: release} })
	b.publish(text("one", "body"))
	must(t, b.service.Journal.WaitBegun(within(t), "one", 1))
	r := b.record(nil, "one")
	if r.State != "processing" || r.Lease == nil || r.Request == nil || !r.Request.After(r.Now) || !strings.Contains(r.Where, "at work") {
		t.Errorf("record: %+v", r)
	}
	b.forget(nil, 1, []string{"refused", "--force", "at work"}, "one")
	b.forget(nil, 1, []string{"refused", "--force"}, "one", "--done")
	if got := b.record(nil, "one"); got.State != "processing" {
		t.Errorf("after a refusal: %+v", got)
	}
	b.forget(nil, 0, []string{"forgotten", "claimed anew", "It was:"}, "--force", "one")
	if code, output := b.inspect(nil, "one"); code != 1 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	close(release)
	// The success is recorded all the same.
	b.waitOutcomes(map[string]float64{"done": 1})
	if got := b.record(nil, "one"); got.State != "done" {
		t.Errorf("after the success: %+v", got)
	}
	b.finish()
}

// TestForgetOpensADeadRecord: without its letter's dead-id nothing but forget does.
func TestForgetOpensADeadRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"FORWARD_ON_UNKNOWN": "deadletter"})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Close: true} })
	b.publish(text("one", "body"))
	letter := b.letters(1)[0]
	r := b.record(nil, "one")
	if r.State != "dead" || r.Reason != "unknown-outcome" || !r.EverUnknown || r.Unknown != 1 || r.DeadID != letter.Headers["x-rabbitonce-dead-id"] {
		t.Errorf("record: %+v", r)
	}
	b.answer(200, "")
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"dead_letter": 2})    // a copy is not POSTed
	b.forget(nil, 1, []string{"refused", "--force"}, "one") // the request may still be at work
	b.forget(nil, 0, []string{"forgotten", "NOT flagged", "unknown-outcome", r.DeadID, b.queue + ".dead"}, "--force", "one")
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"dead_letter": 2, "done": 1})
	b.finish()
}

// TestInspectAndForgetWaiting: the next attempt comes at once and counts from 1.
func TestInspectAndForgetWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"RETRY_BACKOFF": "1h", "RETRY_MAX_AGE": "2h"})
	b.service.Behave(func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusServiceUnavailable} })
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"parked": 1})
	settings := env{"RETRY_BACKOFF": "1h", "RETRY_MAX_AGE": "2h"}
	r := b.record(settings, "one")
	if r.State != "waiting" || r.Deferred != 1 || r.LastOutcome != "deferred" || r.Due == nil || r.Due.Sub(r.Now) < 30*time.Minute || !strings.Contains(r.Where, b.queue+".wait.1h") {
		t.Errorf("record: %+v", r)
	}
	b.answer(200, "")
	b.publish(text("one", "body")) // a copy waits as well
	b.forget(settings, 0, []string{"forgotten", "from 1"}, "one")
	b.waitMetrics(func(m samples) bool { return m.byLabel("rabbitonce_deliveries_total", b.queue, "outcome")["done"] == 1 })
	entries := b.waitPosts(2)
	if n := entries[1].Header.Get("Delivery-Attempt"); n != "1" {
		t.Errorf("the next attempt is %s, want 1", n)
	}
}

// TestInspectBySource: an ID is found wherever it came from, and two messages of one ID are told apart.
func TestInspectBySource(t *testing.T) {
	t.Parallel()
	settings := env{"DEDUP_ID_FROM": "message-id,header:x-id,correlation-id"}
	b := newBench(t, settings)
	inHeader := amqp.Publishing{Headers: amqp.Table{"x-id": "one"}, Body: []byte("other")}
	b.publish(inHeader)
	b.waitOutcomes(map[string]float64{"done": 1})
	if r := b.record(settings, "one"); r.Source != "header:x-id" || r.State != "done" {
		t.Errorf("record: %+v", r)
	}
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"done": 2})
	code, output := b.inspect(settings, "one")
	if code != 0 || strings.Count(output, "state ") != 2 {
		t.Errorf("exit code %d, want both records:\n%s", code, output)
	}
	b.forget(settings, 2, []string{"more than one record", "--source", "header:x-id"}, "one", "--done")
	b.forget(settings, 2, []string{"--source", "message_id"}, "one", "--source", "message_id")
	b.forget(settings, 1, []string{"nothing to forget"}, "one", "--done", "--source", "correlation-id")
	b.forget(settings, 0, []string{"forgotten", "(header:x-id)"}, "one", "--done", "--source", "header:x-id")
	if r := b.record(settings, "one"); r.Source != "message-id" {
		t.Errorf("record: %+v", r)
	}
	if r := b.record(settings, "one", "--source", "message-id"); r.State != "done" {
		t.Errorf("record: %+v", r)
	}
	b.finish()
}

// TestInspectOddIDs: an ID is found byte for byte, however long and whatever is in it.
func TestInspectOddIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	odd := []string{
		strings.Repeat("long-", 60), "50%:of:%25", "-one", "--json", "grün ☃", "a'b\"c\\", "%sha256:one", "line\nbreak",
	}
	for _, id := range odd {
		if len(id) > 255 {
			b.publish(amqp.Publishing{Headers: amqp.Table{"x-message-id": id}, Body: []byte("body")})
			continue
		}
		b.publish(text(id, "body"))
	}
	b.waitOutcomes(map[string]float64{"done": float64(len(odd))})
	for _, id := range odd {
		if r := b.record(nil, id); r.State != "done" {
			t.Errorf("%q: %+v", id, r)
		}
		code, output := b.inspect(nil, "--", id)
		if code != 0 || strings.Contains(output, "line\nbreak") {
			t.Errorf("%q: exit code %d:\n%s", id, code, output)
		}
		b.forget(nil, 0, []string{"forgotten"}, "--done", "--", id)
	}
	if left := b.records(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	b.finish()
}

// TestInspectSpoiltKey: a key of another program is explained, and left to its owner.
func TestInspectSpoiltKey(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	key := b.queue + "://" + b.queue + ":one"
	for name, spoil := range map[string]func() error{
		"text": func() error { return shared.store.Set(within(t), key, "garbage", time.Hour).Err() },
		"list": func() error { return shared.store.RPush(within(t), key, "garbage").Err() },
	} {
		must(t, shared.store.Del(within(t), key).Err())
		must(t, spoil())
		code, output := b.inspect(nil, "one")
		if code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		says(t, output, "foreign", "did not write", "DEDUP_PREFIX", key)
		b.forget(nil, 1, []string{"nothing was deleted", "delete the key"}, "one", "--force", "--done")
		if n, err := shared.store.Exists(within(t), key).Result(); err != nil || n != 1 {
			t.Errorf("%s: %d keys left (%v)", name, n, err)
		}
	}
}

// TestRecordsOutOfReach: every mistake and every trouble of the store is told, with what to do.
func TestRecordsOutOfReach(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	must(t, shared.store.Do(within(t), "ACL", "SETUSER", "nothing", "on", ">secret", "+ping").Err())
	for name, c := range map[string]struct {
		settings env
		args     []string
		code     int
		words    []string
	}{
		"no such queue":   {nil, []string{"nowhere", "one"}, 2, []string{"nowhere", "none of QUEUES", b.queue}},
		"no ID":           {nil, []string{b.queue}, 2, []string{"2 argument(s)", "usage: rabbitonce"}},
		"blank ID":        {nil, []string{b.queue, " "}, 2, []string{"no message ID"}},
		"no such place":   {nil, []string{b.queue, "one", "--source", "body"}, 2, []string{"--source", "header:NAME"}},
		"configuration":   {env{"DEDUP_LEASE": "soon"}, []string{b.queue, "one"}, 2, []string{"DEDUP_LEASE"}},
		"memory":          {env{"DEDUP_STORE": "memory", "REDIS_URL": ""}, []string{b.queue, "one"}, 2, []string{"DEDUP_STORE=memory", "no other process"}},
		"store away":      {env{"REDIS_URL": "redis://" + nobody}, []string{b.queue, "one"}, 1, []string{nobody, "connection refused"}},
		"wrong password":  {env{"REDIS_URL": storeURL("wrong")}, []string{b.queue, "one"}, 1, []string{"WRONGPASS", "REDIS_PASSWORD"}},
		"no permission":   {env{"REDIS_URL": "redis://nothing:secret@" + shared.redis.Addr}, []string{b.queue, "one"}, 1, []string{"NOPERM", "+get"}},
		"another service": {env{"REDIS_URL": "redis://" + b.service.Addr}, []string{b.queue, "one"}, 1, nil},
	} {
		for _, command := range []string{"inspect", "forget"} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				code, output := execute(t, b.env().with(c.settings), append([]string{command}, c.args...)...)
				if code != c.code {
					t.Errorf("exit code %d, want %d:\n%s", code, c.code, output)
				}
				says(t, output, c.words...)
			})
		}
	}
}
