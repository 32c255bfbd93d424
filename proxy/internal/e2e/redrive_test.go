package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// redriven is a redrive that has ended.
type redriven struct {
	code       int
	out, notes string
}

// redriveEnv is the environment of the sidecar, which the command shares.
func (s *stand) redriveEnv(settings ...env) env {
	all := env{
		"RABBITMQ_URL": s.broker.URL, "REDIS_URL": s.redis.URL, "QUEUES": s.queue, "FORWARD_URL": s.service.URL + "/work", "DEDUP_PREFIX": s.queue,
	}
	for _, more := range settings {
		maps.Copy(all, more)
	}
	return all
}

// redriveWith runs the command to its end.
func (s *stand) redriveWith(settings env, args ...string) redriven {
	s.t.Helper()
	c := exec.CommandContext(s.ctx, shared.binary.Path, append([]string{"redrive"}, args...)...)
	c.Env = []string{}
	for name, value := range s.redriveEnv(settings) {
		c.Env = append(c.Env, name+"="+value)
	}
	var out, notes bytes.Buffer
	c.Stdout, c.Stderr = &out, &notes
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	got := redriven{code: c.ProcessState.ExitCode(), out: out.String(), notes: notes.String()}
	s.t.Logf("redrive %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.notes)
	if strings.Contains(got.notes, "DATA RACE") || strings.Contains(got.notes, "panic:") {
		s.t.Error("the command has a fault")
	}
	return got
}

// redrive runs the command for the stand's queue and wants exit code 0.
func (s *stand) redrive(flags ...string) redriven {
	s.t.Helper()
	got := s.redriveWith(nil, append([]string{s.queue}, flags...)...)
	if got.code != 0 {
		s.t.Errorf("exit code %d", got.code)
	}
	return got
}

// summary is the last line of a redrive with --json.
type summary struct {
	Letters        int            `json:"letters"`
	LookedAt       int            `json:"looked_at"`
	PutBack        int            `json:"put_back"`
	ByReason       map[string]int `json:"by_reason"`
	OtherQueues    int            `json:"other_queues"`
	NotSelected    int            `json:"not_selected"`
	UnknownOutcome int            `json:"unknown_outcome"`
	ByBroker       int            `json:"by_broker"`
	Error          string         `json:"error"`
}

// parse reads what a redrive with --json printed: the IDs of its letters, and the summary.
func (s *stand) parse(r redriven) (ids []string, last summary) {
	s.t.Helper()
	for line := range strings.Lines(r.out) {
		var l struct {
			Letter  *struct{ ID string }
			Summary *summary
		}
		s.must(json.Unmarshal([]byte(line), &l))
		if l.Letter != nil {
			ids = append(ids, l.Letter.ID)
		}
		if l.Summary != nil {
			last = *l.Summary
		}
	}
	return ids, last
}

// putBack wants that a redrive put back n letters.
func (s *stand) putBack(n int, flags ...string) summary {
	s.t.Helper()
	_, last := s.parse(s.redrive(append(flags, "--json")...))
	if last.PutBack != n {
		s.t.Errorf("%d letters put back, want %d", last.PutBack, n)
	}
	return last
}

// startRedrive starts the command and does not wait for it.
func (s *stand) startRedrive(settings env, flags ...string) *replica {
	s.t.Helper()
	process, err := testkit.StartReplica(shared.binary.Path, s.redriveEnv(settings), append([]string{"redrive", s.queue}, flags...)...)
	s.must(err)
	r := &replica{Replica: process, stand: s}
	s.replicas = append(s.replicas, r)
	return r
}

// exits waits for the end of a command.
func (r *replica) exits(code int) {
	r.stand.t.Helper()
	got, err := r.Wait(r.stand.ctx)
	r.stand.must(err)
	if got != code {
		r.stand.t.Errorf("exit code %d, want %d:\n%s", got, code, r.Logs.Text())
	}
}

// waitLine waits for a line of output with these words.
func (r *replica) waitLine(words string) {
	r.stand.t.Helper()
	_, err := r.Logs.Wait(r.stand.ctx, func(l testkit.LogLine) bool { return strings.Contains(l.Text, words) })
	r.stand.must(err)
}

// dead is a letter as the sidecar writes it.
func deadLetter(queue, id string, headers amqp.Table) amqp.Publishing {
	m := message(id)
	m.Headers = amqp.Table{
		"x-rabbitonce-queue": queue, "x-rabbitonce-reason": "rejected", "x-rabbitonce-attempts": int64(1), "x-rabbitonce-exchange": "",
		"x-rabbitonce-routing-key": queue, "x-rabbitonce-dead-id": "00112233" + id, "x-rabbitonce-dead-at": "2026-01-02T03:04:05Z",
	}
	maps.Copy(m.Headers, headers)
	return m
}

// publishLetters puts letters of the stand's queue into its dead letters.
func (s *stand) publishLetters(ids ...string) {
	s.t.Helper()
	var letters []amqp.Publishing
	for _, id := range ids {
		letters = append(letters, deadLetter(s.queue, id, nil))
	}
	s.must(s.client.PublishTo(s.ctx, s.dead, letters...))
}

// lettersAre wants these letters in the dead letters, in this order.
func (s *stand) lettersAre(ids ...string) {
	s.t.Helper()
	s.contains(s.dead, ids...)
}

// contains wants these messages in a queue, in this order, and takes them.
func (s *stand) contains(queue string, ids ...string) {
	s.t.Helper()
	taken, err := s.client.Take(s.ctx, queue, len(ids))
	s.must(err)
	more, err := s.client.Drain(queue)
	s.must(err)
	var got []string
	for _, m := range append(taken, more...) {
		got = append(got, m.MessageId)
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		s.t.Errorf("in queue %s (-want +got):\n%s", queue, diff)
	}
}

// oddMessages have what could change on the way: every type of header that the client can send, properties, bytes, CC.
func oddMessages(cc string) []amqp.Publishing {
	everything := amqp.Publishing{
		MessageId: "everything", Body: []byte("\x00\xff\r\n{"), ContentType: "text/x; charset=latin1", ContentEncoding: "gzip", Priority: 7,
		CorrelationId: "c", ReplyTo: "r", Type: "t", AppId: "a", UserId: "guest", Expiration: "3600000", Timestamp: time.Unix(1700000000, 0).UTC(),
		DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{
			"bool": true, "int8": int8(-1), "uint8": uint8(200), "int16": int16(-300), "uint16": uint16(60000), "int32": int32(-70000),
			"uint32": uint32(4e9), "int64": int64(-5e12), "float32": float32(0.5), "float64": 1e300, "decimal": amqp.Decimal{Scale: 2, Value: -314},
			"string": "ä\x00\xff", "bytes": []byte{0, 255}, "time": time.Unix(1700000001, 0).UTC(), "nil": nil, "table": amqp.Table{"a": []any{amqp.Table{"b": int32(1)}, nil}},
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x y/ü": "odd name", "x-rabbitonce-somebody-elses": "kept",
		},
	}
	plain := amqp.Publishing{MessageId: "plain", DeliveryMode: amqp.Persistent}
	copied := amqp.Publishing{MessageId: "copied", DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{cc}}, Body: []byte("1")}
	return []amqp.Publishing{everything, plain, copied}
}

// Catches: anything of a message that a redrive changes: the service is asked the same again, and the second letter is the first one.
func TestRedriveRoundTrip(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action {
		return testkit.Action{Status: http.StatusBadRequest, Body: []byte("no")}
	})
	exchange, cc := s.queue+".ex", s.queue+".cc"
	s.declare(cc)
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "orders.#", exchange))
	s.must(s.client.Bind(cc, cc, exchange))
	s.start()
	letters := map[string]amqp.Delivery{}
	var putBack []amqp.Publishing
	for _, m := range oddMessages(cc) {
		s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "orders.eu.new", Publishing: m}))
		l := s.letters(1)[0]
		letters[l.MessageId] = l
		putBack = append(putBack, amqp.Publishing{
			Headers: l.Headers, ContentType: l.ContentType, ContentEncoding: l.ContentEncoding, DeliveryMode: l.DeliveryMode, Priority: l.Priority,
			CorrelationId: l.CorrelationId, ReplyTo: l.ReplyTo, MessageId: l.MessageId, Timestamp: l.Timestamp, Type: l.Type, AppId: l.AppId, Body: l.Body,
		})
	}
	s.must(s.client.PublishTo(s.ctx, s.dead, putBack...))
	s.putBack(3)
	died := cmpopts.IgnoreMapEntries(func(name string, _ any) bool {
		return slices.Contains([]string{"x-rabbitonce-dead-id", "x-rabbitonce-dead-at", "x-rabbitonce-first-seen"}, name)
	})
	here := cmpopts.IgnoreFields(amqp.Delivery{}, "Acknowledger", "DeliveryTag", "ConsumerTag", "Redelivered")
	for _, l := range s.letters(3) {
		if diff := cmp.Diff(letters[l.MessageId], l, died, here); diff != "" {
			t.Errorf("the second letter of %s (-first +second):\n%s", l.MessageId, diff)
		}
		posts := s.posts(l.MessageId, 2)
		once, again := posts[0], posts[1]
		for _, name := range []string{"Delivery-Deadline", "Rabbitmq-Redelivered"} {
			once.Header.Del(name)
			again.Header.Del(name)
		}
		if id := again.Header.Get("RabbitMQ-Header-x-rabbitonce-dead-id"); id == "" {
			t.Errorf("the second POST of %s does not tell the dead-id", l.MessageId)
		}
		again.Header.Del("RabbitMQ-Header-x-rabbitonce-dead-id")
		if diff := cmp.Diff(once.Header, again.Header); diff != "" || once.BodySHA256 != again.BodySHA256 {
			t.Errorf("the second POST of %s, body %s and %s (-first +second):\n%s", l.MessageId, once.BodySHA256, again.BodySHA256, diff)
		}
	}
	if ready, _, err := s.client.Depth(cc); err != nil || ready != 1 {
		t.Errorf("the queue of CC has %d messages (%v), want the one that was published", ready, err)
	}
	s.settled()
}

// Catches: an expiration that acts on the way back.
func TestRedriveOfAnExpiredMessage(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(testkit.Received) testkit.Action {
		if healthy.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusBadRequest}
	})
	first := s.start()
	m := message("a")
	m.Expiration = "60000"
	s.must(s.client.PublishTo(s.ctx, s.queue, m))
	s.eventually("the letter is there", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 1, err
	})
	first.term()
	l := s.letters(1)[0]
	l.Headers["x-rabbitonce-expiration"] = "1" // in effect, long ago
	s.must(s.client.PublishTo(s.ctx, s.dead, amqp.Publishing{MessageId: "a", Headers: l.Headers, Body: l.Body, DeliveryMode: l.DeliveryMode}))
	healthy.Store(true)
	s.putBack(1)
	s.outage(300 * time.Millisecond) // time to be dropped
	s.start()
	s.answered("a")
	s.settled()
	s.noLetters()
}

// Catches: a letter whose record stays closed, counts that do not start again, an unknown outcome that is forgotten.
func TestRedriveOfEveryReason(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case healthy.Load():
			return testkit.Action{}
		case r.Key == "unknown":
			return testkit.Action{Close: true}
		case r.Key == "rejected":
			return testkit.Action{Status: http.StatusBadRequest}
		case r.Key == "old":
			return testkit.Action{Status: http.StatusServiceUnavailable}
		}
		return testkit.Action{Status: http.StatusInternalServerError}
	})
	settings := env{
		"RETRY_MAX_ATTEMPTS": "2", "RETRY_BACKOFF": "50ms", "RETRY_MAX_AGE": "400ms", "FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s",
	}
	first := s.start(settings)
	s.publish("rejected", "exhausted", "old", "unknown")
	first.waitMetric(`rabbitonce_dead_letters_total{queue="{queue}",reason="unknown-outcome"}`, 1)
	s.must(s.client.PublishTo(s.ctx, s.queue, amqp.Publishing{Body: []byte("nobody's"), DeliveryMode: amqp.Persistent}))
	other := message("unknown")
	other.Body = []byte("another body")
	s.must(s.client.PublishTo(s.ctx, s.queue, other))
	for _, reason := range []string{"rejected", "attempts-exhausted", "max-age", "missing-id", "conflict"} {
		first.waitMetric(fmt.Sprintf(`rabbitonce_dead_letters_total{queue="{queue}",reason=%q}`, reason), 1)
	}
	first.term()
	healthy.Store(true)
	got := s.putBack(6)
	want := map[string]int{"rejected": 1, "attempts-exhausted": 1, "max-age": 1, "unknown-outcome": 1, "missing-id": 1, "conflict": 1}
	if diff := cmp.Diff(want, got.ByReason); diff != "" || got.UnknownOutcome != 1 {
		t.Errorf("%d of unknown outcome, reasons (-want +got):\n%s", got.UnknownOutcome, diff)
	}
	before := s.service.Journal.Count()
	s.start(settings)
	s.answered("rejected", "exhausted", "old", "unknown")
	var reasons []string
	for _, l := range s.letters(2) {
		reasons = append(reasons, fmt.Sprint(l.Headers["x-rabbitonce-reason"]))
	}
	slices.Sort(reasons)
	if diff := cmp.Diff([]string{"conflict", "missing-id"}, reasons); diff != "" { // nothing has changed for these
		t.Errorf("letters after that (-want +got):\n%s", diff)
	}
	for _, e := range s.service.Journal.Entries()[before:] {
		if e.Attempt != "1" || e.Unknown != (e.Key == "unknown") {
			t.Errorf("POST of %s says attempt %s, unknown %t", e.Key, e.Attempt, e.Unknown)
		}
	}
	s.settled()
}

// Catches: a filter that puts back more, or less, than it says; letters that stay but change their order or get lost; a dry run that puts back.
func TestRedriveSelects(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*stand) error{
		"quorum":  func(s *stand) error { return s.client.DeclareQuorum(s.queue+".shared", nil) },
		"classic": func(s *stand) error { return s.client.DeclareClassic(s.queue+".shared", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			s.dead = s.queue + ".shared"
			s.must(declare(s))
			reason := func(r string) amqp.Table { return amqp.Table{"x-rabbitonce-reason": r} }
			s.must(s.client.PublishTo(s.ctx, s.dead,
				deadLetter("another", "x", nil), deadLetter(s.queue, "a", nil), deadLetter(s.queue, "b", reason("unknown-outcome")), message("stranger"),
				deadLetter(s.queue, "c", reason("max-age")), deadLetter(s.queue, "d,1", nil), deadLetter(s.queue, "e", nil)))
			run := func(flags ...string) ([]string, summary) {
				t.Helper()
				got := s.redriveWith(env{"DEADLETTER_QUEUE": "{queue}.shared"}, append([]string{s.queue, "--json"}, flags...)...)
				if got.code != 0 {
					t.Errorf("exit code %d", got.code)
				}
				return s.parse(got)
			}
			listed, last := run("--dry-run")
			if diff := cmp.Diff([]string{"a", "b", "c", "d,1", "e"}, listed); diff != "" || last.OtherQueues != 2 || last.UnknownOutcome != 1 {
				t.Errorf("dry run: %+v, letters (-want +got):\n%s", last, diff)
			}
			listed, _ = run("--dry-run", "--reason", "rejected,max-age", "--limit", "3") // the second return of some of them
			if diff := cmp.Diff([]string{"a", "c", "d,1"}, listed); diff != "" {
				t.Errorf("dry run with a limit (-want +got):\n%s", diff)
			}
			if ready, _, err := s.client.Depth(s.queue); err != nil || ready != 0 {
				t.Errorf("%d messages in the queue after dry runs (%v)", ready, err)
			}
			missed := s.redriveWith(env{"DEADLETTER_QUEUE": "{queue}.shared"}, s.queue, "--id", `d\,1,b`, "--id", "x")
			if missed.code != 1 || !strings.Contains(missed.out, "not found: x\n") {
				t.Errorf("an ID that is another queue's: exit code %d", missed.code)
			}
			s.contains(s.queue, "b", "d,1")
			run("--reason", "max-age,conflict")
			s.contains(s.queue, "c")
			if _, last = run("--limit", "1"); last.PutBack != 1 {
				t.Errorf("%d put back with a limit of 1", last.PutBack)
			}
			if _, last = run(); last.PutBack != 1 || last.OtherQueues != 2 {
				t.Errorf("what is left: %+v", last)
			}
			ours, err := s.client.Drain(s.queue)
			s.must(err)
			left, err := s.client.Drain(s.dead)
			s.must(err)
			if diff := cmp.Diff([]string{"a", "e"}, sortedIDs(ours)); diff != "" {
				t.Errorf("put back at the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"stranger", "x"}, sortedIDs(left)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func sortedIDs(messages []amqp.Delivery) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.MessageId)
	}
	slices.Sort(all)
	return all
}

// Catches: letters that a dry run loses or doubles, and an order that it changes in a queue that keeps it.
func TestRedriveDryRunLeavesTheLetters(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*stand) error{
		"quorum": func(s *stand) error { return nil }, "classic": func(s *stand) error {
			return errors.Join(s.client.Delete(s.dead), s.client.DeclareClassic(s.dead, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			s.must(declare(s))
			all := ids("a", 300)
			s.publishLetters(all...)
			if listed, _ := s.parse(s.redrive("--dry-run", "--json")); !slices.Equal(listed, all) {
				t.Errorf("%d letters listed, or in another order", len(listed))
			}
			if name == "classic" {
				s.lettersAre(all...)
				return
			}
			left, err := s.client.Take(s.ctx, s.dead, 300)
			s.must(err)
			if diff := cmp.Diff(slices.Sorted(slices.Values(all)), sortedIDs(left)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			s.noLetters()
		})
	}
}

// Catches: letters that the broker drops because a redrive looked at them too often: here there is no dead-letter exchange.
func TestRedriveStaysBelowTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.must(s.client.Delete(s.dead))
	s.must(s.client.DeclareQuorum(s.dead, amqp.Table{"x-delivery-limit": int32(3)}))
	all := ids("a", 3)
	s.publishLetters(all...)
	for range 8 {
		s.putBack(0, "--reason", "conflict")
	}
	s.lettersAre(all...)
}

// Catches: a broker's dead letter taken for another queue's, or put back as something else than it was.
func TestRedriveOfTheBrokersDeadLetters(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	exchange, other := s.queue+".ex", s.queue+".other"
	arguments := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.dead}
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareQuorum(s.queue, arguments))
	s.must(s.client.DeclareQuorum(other, arguments))
	s.must(s.client.DeclareExchange(exchange, "topic"))
	s.must(s.client.Bind(s.queue, "new.#", exchange))
	m := message("a")
	m.UserId, m.Headers = "guest", amqp.Table{"n": int32(1)}
	s.must(s.client.Publish(s.ctx, testkit.Message{Exchange: exchange, RoutingKey: "new.eu", Publishing: m}))
	s.must(s.client.PublishTo(s.ctx, other, message("b")))
	s.must(s.reject(s.queue))
	s.must(s.reject(other))
	s.eventually("both are dead", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 2, err
	})
	got := s.putBack(1)
	if got.ByReason["broker-rejected"] != 1 || got.ByBroker != 1 || got.OtherQueues != 1 {
		t.Errorf("summary %+v", got)
	}
	s.start()
	s.answered("a")
	s.settled()
	post := s.posts("a", 1)[0]
	if post.Header.Get("RabbitMQ-Exchange") != exchange || post.Header.Get("RabbitMQ-Routing-Key") != "new.eu" || post.Header.Get("RabbitMQ-Header-x-death") != "" {
		t.Errorf("headers of the POST: %v", post.Header)
	}
	s.lettersAre("b")
}

// Catches: letters of DEADLETTER_MODE=reject that cannot be put back; a record that is closed, opened without a decision.
func TestRedriveAfterReject(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if healthy.Load() {
			return testkit.Action{}
		}
		return testkit.Action{Status: http.StatusBadRequest, Close: r.Key == "unknown"}
	})
	s.must(s.client.Delete(s.queue))
	s.must(s.client.DeclareQuorum(s.queue, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.dead}))
	settings := env{"DEADLETTER_MODE": "reject", "FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s"}
	s.start(settings)
	s.publish("rejected", "unknown")
	s.eventually("both are dead", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready == 2, err
	})
	s.emptied()
	healthy.Store(true)
	if got := s.redriveWith(settings, s.queue); got.code != 2 || !strings.Contains(got.notes, "--from") {
		t.Errorf("without --from: exit code %d", got.code)
	}
	if got := s.redriveWith(settings, s.queue, "--from", s.dead); got.code != 0 || !strings.Contains(got.out, "without a dead-id: 2") {
		t.Errorf("with --from: exit code %d", got.code)
	}
	s.answered("rejected")
	s.settled()
	s.posts("unknown", 1)
	s.lettersAre("unknown")
}

// reject takes one message and rejects it.
func (s *stand) reject(queue string) error {
	connection, err := amqp.Dial(s.broker.URL)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	m, ok, err := channel.Get(queue, false)
	if err == nil && ok {
		err = m.Reject(false)
	}
	return errors.Join(err, channel.Close()) // the close is answered after the reject has arrived
}

// Catches: an acknowledgement before the confirm (a kill would lose the letter), and a copy in both queues that is executed twice.
func TestRedriveKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []struct {
		name    string
		barrier func(*stand, legs) *testkit.Barrier
		copies  int // put back in the end
	}{
		{"before the publish", func(s *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicPublish(s.queue))
		}, 1},
		{"before the confirm", func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToClient, testkit.BasicAck())
		}, 2},
		{"before the ack", func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
		}, 2},
	} {
		for _, unknown := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unknown %t", point.name, unknown), func(t *testing.T) {
				t.Parallel()
				var healthy atomic.Bool
				s := newStand(t, func(testkit.Received) testkit.Action {
					return testkit.Action{Close: unknown && !healthy.Load(), Status: map[bool]int{false: 400, true: 200}[healthy.Load()]}
				})
				settings := env{"FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s"}
				first := s.start(settings)
				s.publish("a")
				first.waitMetric(`rabbitonce_deliveries_total{outcome="dead_letter",queue="{queue}"}`, 1)
				s.emptied() // its record is settled too
				first.term()
				healthy.Store(true)
				l := s.newLegs()
				barrier := point.barrier(s, l)
				killed := s.startRedrive(l.env)
				killed.killAt(barrier)
				s.eventually("the letter is back", func() (bool, error) {
					ready, _, err := s.client.Depth(s.dead)
					return ready == 1, err
				})
				s.putBack(1)
				if ready, _, err := s.client.Depth(s.queue); err != nil || ready != point.copies {
					t.Errorf("%d copies put back (%v), want %d", ready, err, point.copies)
				}
				s.start(settings)
				s.answered("a")
				s.settled()
				second := s.posts("a", 2)[1]
				if second.Attempt != "1" || second.Unknown != unknown || second.Status != 200 {
					t.Errorf("the second POST: attempt %s, unknown %t, answered %d", second.Attempt, second.Unknown, second.Status)
				}
				s.noLetters()
			})
		}
	}
}

// Catches: a redrive that goes round with what dies again.
func TestRedriveWhileSomeDieAgain(t *testing.T) {
	t.Parallel()
	bad := func(id string) bool { n, _ := strconv.Atoi(strings.TrimPrefix(id, "a-")); return n%4 == 0 }
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if bad(r.Key) {
			return testkit.Action{Status: http.StatusBadRequest}
		}
		return testkit.Action{}
	})
	s.start()
	all := ids("a", 200)
	s.publishLetters(all...)
	got := s.putBack(200, "--rate", "0")
	if got.LookedAt != 200 {
		t.Errorf("looked at %d letters", got.LookedAt)
	}
	var good, again []string
	for _, id := range all {
		if bad(id) {
			again = append(again, id)
		} else {
			good = append(good, id)
		}
	}
	s.answered(good...)
	letters := s.letters(len(again))
	s.settled()
	slices.Sort(again)
	if diff := cmp.Diff(again, sortedIDs(letters)); diff != "" {
		t.Errorf("died again (-want +got):\n%s", diff)
	}
	for _, id := range all {
		s.posts(id, 1)
	}
}

// Catches: a rate that is not kept to, a letter that is lost or doubled, an order that changes.
func TestRedriveOfManyWithARate(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 5000)
	s.publishLetters(all...)
	began := time.Now()
	got := s.redrive("--rate", "500", "--limit", "1000")
	if took := time.Since(began); took < 1998*time.Millisecond {
		t.Errorf("1000 letters at 500 a second took %v", took)
	}
	if !strings.Contains(got.notes, " put back, ") {
		t.Error("no progress was shown")
	}
	s.contains(s.queue, all[:1000]...)
	s.putBack(4000, "--rate", "0")
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if diff := cmp.Diff(slices.Sorted(slices.Values(all[1000:])), sortedIDs(messages)); diff != "" {
		t.Errorf("put back without a rate (-want +got):\n%s", diff)
	}
	s.noLetters()
}

// Catches: two redrives that put a letter back twice, or wait for each other.
func TestTwoRedrivesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 400)
	s.publishLetters(all...)
	s.must(s.client.PublishTo(s.ctx, s.dead, deadLetter("another", "x", nil)))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { s.redrive("--rate", "0") })
	}
	both.Wait()
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	slices.Sort(all)
	if diff := cmp.Diff(all, sortedIDs(messages)); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	s.lettersAre("x")
}

// Catches: an interruption that loses a letter, leaves one unacknowledged, or is not told.
func TestRedriveInterrupted(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 100)
	s.publishLetters(all...)
	s.must(s.client.PublishTo(s.ctx, s.dead, deadLetter("another", "x", nil)))
	command := s.startRedrive(nil, "--rate", "20")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready >= 3, err
	})
	s.must(command.Term())
	command.exits(1)
	command.waitLine("interrupted: nothing is lost")
	command.waitLine("looked at: ")
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if len(messages) < 3 || len(messages) > 99 {
		t.Errorf("%d put back", len(messages))
	}
	s.lettersAre(append(all[len(messages):], "x")...)
}

// Catches: a source queue that is declared, as something else than it was, when it is deleted meanwhile.
func TestRedriveIntoADeletedQueue(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 100)
	s.publishLetters(all...)
	command := s.startRedrive(nil, "--rate", "20")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready >= 3, err
	})
	s.must(s.client.Delete(s.queue))
	command.exits(1)
	command.waitLine("stopped, nothing is lost") // the broker may answer with an internal error first
	if there, err := s.client.Exists(s.queue); there || err != nil {
		t.Errorf("the source queue was declared (%v)", err)
	}
	s.eventually("the letters are back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready >= 90, fmt.Errorf("%d letters, %w", ready, err)
	})
}

// Catches: trouble that is not told, or not in words that help; a queue declared by the way; a letter lost in it.
func TestRedriveRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.publishLetters("a")
	for _, tt := range []struct {
		name     string
		args     []string // QUEUE is the stand's
		settings env
		arrange  func() error
		code     int
		words    string
	}{
		{name: "another queue", args: []string{"nobodys"}, code: 2, words: `"nobodys" is not one of QUEUES (`},
		{name: "a reason", args: []string{"QUEUE", "--reason", "tired"}, code: 2, words: `there is no reason "tired": rejected, `},
		{name: "a limit", args: []string{"QUEUE", "--limit", "-1"}, code: 2, words: "--limit"},
		{name: "a rate", args: []string{"QUEUE", "--rate", "-1"}, code: 2, words: "--rate"},
		{name: "no queue", code: 2, words: "takes 1 argument"},
		{name: "settings", args: []string{"QUEUE"}, settings: env{"FORWARD_URL": ""}, code: 2, words: "FORWARD_URL"},
		{name: "no broker", args: []string{"QUEUE"}, settings: env{"RABBITMQ_URL": "amqp://guest:guest@127.0.0.1:1/"}, code: 1, words: "connection refused"},
		{name: "no login", args: []string{"QUEUE"}, settings: env{"RABBITMQ_PASSWORD": "wrong"}, code: 1, words: "check RABBITMQ_URL"},
		{name: "no dead-letter queue", args: []string{"QUEUE"}, settings: env{"DEADLETTER_QUEUE": "{queue}.none"}, code: 1, words: ".none does not exist"},
		{name: "a full queue", args: []string{"QUEUE"}, code: 1, words: "length limit", arrange: func() error {
			return errors.Join(s.client.Delete(s.queue),
				s.client.DeclareClassic(s.queue, amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}))
		}},
		{name: "no source queue", args: []string{"QUEUE"}, code: 1, words: "does not exist: create it first", arrange: func() error {
			return s.client.Delete(s.queue)
		}},
	} {
		if tt.arrange != nil {
			s.must(tt.arrange())
		}
		for i, arg := range tt.args {
			tt.args[i] = strings.ReplaceAll(arg, "QUEUE", s.queue)
		}
		got := s.redriveWith(tt.settings, tt.args...)
		if got.code != tt.code || !strings.Contains(got.notes, tt.words) {
			t.Errorf("%s: exit code %d, want %d and %q", tt.name, got.code, tt.code, tt.words)
		}
	}
	if there, err := s.client.Exists(s.queue); there || err != nil {
		t.Errorf("the source queue was declared (%v)", err)
	}
	s.lettersAre("a")
}

// Catches: an alarm that is not told, that keeps an interrupted command from ending, or in which a letter is lost.
func redriveInAlarm(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.redis, nil)
	all := ids("a", 3)
	s.publishLetters(all...)
	s.watermark("0.0000001")
	command := s.startRedrive(nil)
	command.waitLine("waiting: the broker blocks publishers")
	s.must(command.Term())
	command.exits(1)
	command.waitLine("interrupted: nothing is lost")
	waiting := s.startRedrive(nil)
	waiting.waitLine("waiting: the broker blocks publishers")
	s.watermark("0.6")
	waiting.exits(0)
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if diff := cmp.Diff(all, slices.Compact(sortedIDs(messages))); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	s.noLetters()
}

// Catches: a broker's death that loses a letter, or that the command waits out in silence.
func redriveInOutage(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.redis, nil)
	// Classic queues: a broker of version 3.10 that was killed may leave a quorum queue without a leader.
	for _, queue := range []string{s.queue, s.dead} {
		s.must(s.client.Delete(queue))
		s.must(s.client.DeclareClassic(queue, nil))
	}
	all := ids("a", 2000)
	s.publishLetters(all...)
	command := s.startRedrive(nil, "--rate", "500")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready > 50, err
	})
	s.must(broker.Kill())
	command.exits(1)
	command.waitLine("stopped, nothing is lost, and it can be run again")
	s.must(broker.Start(s.ctx))
	s.dial()
	found := map[string]bool{}
	s.eventuallyEvery(askDear, "every letter is put back", func() (bool, error) {
		s.redrive("--rate", "0")
		messages, err := s.client.Drain(s.queue)
		for _, m := range messages {
			found[m.MessageId] = true
		}
		return len(found) == len(all), errors.Join(err, fmt.Errorf("%d of them", len(found)))
	})
	s.noLetters()
}

// Catches: a permission that is missing told in other words than the broker's, which name it.
func TestRedriveWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.publishLetters("a")
	for name, tt := range map[string]struct{ write, read, words string }{
		"to read the letters":     {write: ".*", read: "^none$", words: ": read ^"},
		"to publish to the queue": {write: "^none$", read: ".*", words: ": write ^"},
	} {
		user := "user-" + strconv.FormatInt(standNumber.Add(1), 10)
		_, err := s.broker.Ctl(s.ctx, "add_user", user, "secret")
		s.must(err)
		_, err = s.broker.Ctl(s.ctx, "set_permissions", user, "^none$", tt.write, tt.read)
		s.must(err)
		got := s.redriveWith(env{"RABBITMQ_USERNAME": user, "RABBITMQ_PASSWORD": "secret"}, s.queue)
		if got.code != 1 || !strings.Contains(got.notes, tt.words) || strings.Contains(got.notes, "secret") {
			t.Errorf("without permission %s: exit code %d", name, got.code)
		}
	}
	s.lettersAre("a")
}
