package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
)

// bench is a queue without a broker: deliveries are handed to its pipeline, and what it settles is read from a
// session that has no channel. The store is the memory store, the service a real HTTP server.
type bench struct {
	queue   *queue
	session *session
	hold    context.Context
	drain   context.CancelCauseFunc
	work    context.Context
	abort   context.CancelCauseFunc
}

func newBench(t *testing.T, service http.Handler, more ...string) *bench {
	t.Helper()
	server := httptest.NewServer(service)
	for i := range more {
		more[i] = strings.ReplaceAll(more[i], "http://SERVICE", server.URL)
	}
	cfg := mustLoad(t, lastWins(four(append([]string{
		"DEDUP_STORE=memory", "REDIS_URL=", "FORWARD_URL=" + server.URL, "RETRY_BACKOFF=10ms", "FORWARD_TIMEOUT=2s", "DEDUP_LEASE=1s", "FORWARD_BRAKE_AFTER=0",
	}, more...)...)))
	p, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{queue: p.queues[0]}
	b.work, b.abort = context.WithCancelCause(context.Background())
	b.hold, b.drain = context.WithCancelCause(b.work)
	b.session = &session{settled: make(chan settlement, 100), ended: make(chan struct{})}
	var background sync.WaitGroup
	life, die := context.WithCancel(context.Background())
	background.Go(func() { _ = p.store.Run(life) })
	background.Go(func() { p.storeGate.run(life) })
	background.Go(func() { b.queue.serviceGate.run(life) })
	t.Cleanup(func() {
		b.abort(errDraining)
		b.queue.handlers.Wait()
		die()
		background.Wait()
		b.queue.service.Close()
		server.Close()
	})
	return b
}

// deliver hands a message over, as a session does.
func (b *bench) deliver(tag uint64, id, body string) {
	d := &delivery{DeliveryTag: tag, MessageId: id, Body: []byte(body), RoutingKey: "orders"}
	b.queue.begin(b.work, b.hold, b.session, d)
}

// settled waits for n settlements and returns them by tag.
func (b *bench) settled(t *testing.T, n int) map[uint64]string {
	t.Helper()
	got := map[uint64]string{}
	for range n {
		select {
		case s := <-b.session.settled:
			got[s.tag] = map[settleVerb]string{settleAck: "ack", settleGiveBack: "back", settleReject: "reject"}[s.verb]
			if s.sent != nil {
				close(s.sent)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("only %v settled", got)
		}
	}
	return got
}

// journal is a service that answers what its body says and remembers what it saw.
type journal struct {
	mu    sync.Mutex
	calls []string // key attempt flagged
	now   int
	most  int // requests for any key at once
	gates map[string]chan struct{}
}

func (j *journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	j.mu.Lock()
	j.now++
	j.most = max(j.most, j.now)
	line := r.Header.Get("Idempotency-Key") + " " + r.Header.Get("Delivery-Attempt")
	if r.Header.Get("Delivery-Outcome-Unknown") == "true" {
		line += " flagged"
	}
	j.calls = append(j.calls, line)
	gate := j.gates[r.Header.Get("Idempotency-Key")]
	codes := strings.Fields(string(body))
	j.mu.Unlock()
	if gate != nil {
		<-gate
	}
	j.mu.Lock()
	j.now--
	j.mu.Unlock()
	attempt, _ := strconv.Atoi(r.Header.Get("Delivery-Attempt"))
	code, _ := strconv.Atoi(codes[min(attempt, len(codes))-1])
	w.WriteHeader(code)
}

func (j *journal) seen() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.calls...)
}

func TestCopiesAreExecutedOnce(t *testing.T) {
	j := &journal{}
	b := newBench(t, j)
	for tag := range uint64(10) {
		b.deliver(tag+1, "m", "200")
	}
	for tag, verb := range b.settled(t, 10) {
		if verb != "ack" {
			t.Errorf("delivery %d: %s", tag, verb)
		}
	}
	if diff := cmp.Diff([]string{"m 1"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFailedAttemptsAreCountedAndRepeated(t *testing.T) {
	j := &journal{}
	b := newBench(t, j)
	b.deliver(1, "m", "500 503 500 200")
	b.settled(t, 1)
	if diff := cmp.Diff([]string{"m 1", "m 2", "m 3", "m 4"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestDeferredAttemptsAreNotHeldAgainstTheMessage(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "RETRY_MAX_ATTEMPTS=1")
	b.deliver(1, "m", "503 503 503 200")
	if got := b.settled(t, 1); got[1] != "ack" || len(j.seen()) != 4 {
		t.Errorf("settled %v after %v", got, j.seen())
	}
}

func TestUnknownIsNotRepeatedBeforeTheDeadlineAndIsFlagged(t *testing.T) {
	j := &journal{}
	b := newBench(t, j)
	began := time.Now()
	b.deliver(1, "m", "502 500 200")
	b.settled(t, 1)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("repeated after %v, before the request's deadline", took)
	}
	if diff := cmp.Diff([]string{"m 1", "m 2 flagged", "m 3 flagged"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestConcurrencyBoundsPOSTs(t *testing.T) {
	j := &journal{gates: map[string]chan struct{}{}}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		j.gates[id] = make(chan struct{})
	}
	b := newBench(t, j, "FORWARD_CONCURRENCY=2")
	tag := uint64(0)
	for id := range j.gates {
		tag++
		b.deliver(tag, id, "200")
	}
	for _, gate := range j.gates {
		close(gate)
	}
	b.settled(t, 6)
	if j.most > 2 {
		t.Errorf("%d at once", j.most)
	}
}

// TestDrain gives back what waits and finishes what is in a POST.
func TestDrain(t *testing.T) {
	j := &journal{gates: map[string]chan struct{}{"posting": make(chan struct{})}}
	b := newBench(t, j, "FORWARD_CONCURRENCY=1", "RETRY_BACKOFF=1m")
	b.deliver(1, "failed", "500")
	waitUntil(t, func() bool { return len(j.seen()) == 1 && b.queue.waiting.Load() == 1 })
	b.deliver(2, "posting", "200")
	waitUntil(t, func() bool { return len(j.seen()) == 2 })
	b.deliver(3, "unstarted", "200")
	b.deliver(4, "posting", "200") // a copy
	waitUntil(t, func() bool { return b.queue.waiting.Load() == 2 })
	b.drain(errDraining)
	if diff := cmp.Diff(map[uint64]string{1: "back", 3: "back", 4: "back"}, b.settled(t, 3)); diff != "" {
		t.Errorf("settled at once (-want +got):\n%s", diff)
	}
	close(j.gates["posting"])
	if diff := cmp.Diff(map[uint64]string{2: "ack"}, b.settled(t, 1)); diff != "" {
		t.Errorf("settled after the POST (-want +got):\n%s", diff)
	}
	if got := b.record(t, "unstarted"); got.Attempts != 0 {
		t.Errorf("a message that only waited has a record: %+v", got)
	}
}

// TestAbort cuts a POST off at the end of the grace: its outcome is unknown, not failed.
func TestAbort(t *testing.T) {
	j := &journal{gates: map[string]chan struct{}{"m": make(chan struct{})}}
	b := newBench(t, j)
	b.deliver(1, "m", "200")
	waitUntil(t, func() bool { return len(j.seen()) == 1 })
	b.abort(errGraceOver)
	if got := b.settled(t, 1); got[1] != "back" {
		t.Errorf("settled %v", got)
	}
	close(j.gates["m"])
	if got := b.record(t, "m"); got.State != dedup.StateWaiting || !got.EverUnknown || got.Unknown != 1 || got.Attempts != 1 {
		t.Errorf("record is %+v", got)
	}
}

// TestUnreachableUsesNoAttempt refuses the first connections: no attempt is used, and the queue goes on by itself.
func TestUnreachableUsesNoAttempt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	b := newBench(t, http.NotFoundHandler(), "FORWARD_URL=http://"+address)
	waitUntil(t, b.queue.serviceGate.isOpen) // a listening socket counts as an answer
	_ = listener.Close()
	b.deliver(1, "m", "200")
	waitUntil(t, func() bool { return !b.queue.serviceGate.isOpen() && b.queue.waiting.Load() == 1 })
	if got := b.record(t, "m"); got.Attempts != 0 {
		t.Errorf("the claim was not given back: %+v", got)
	}
	j := &journal{}
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	back := &http.Server{Handler: j}
	served := make(chan struct{})
	go func() { defer close(served); _ = back.Serve(listener) }()
	b.settled(t, 1)
	_ = back.Close()
	<-served
	if diff := cmp.Diff([]string{"m 1"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestObserveForwardsEverythingAndCounts sends copies, a conflict, a message without an ID and one that is dead: each
// is POSTed.
func TestObserveForwardsEverythingAndCounts(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "DEDUP_MODE=observe")
	b.deliver(1, "m", "200")
	b.settled(t, 1)
	b.deliver(2, "m", "200")
	b.settled(t, 1)
	b.deliver(3, "m", "200 ")
	b.settled(t, 1)
	b.deliver(4, "", "200")
	b.settled(t, 1)
	if diff := cmp.Diff([]string{"m 1", "m 1 flagged", "m 1 flagged", " 1 flagged"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for kind, want := range map[duplicate]float64{duplicateDone: 1, duplicateConflict: 1, duplicateBusy: 0} {
		if got := counterValue(b.queue.metrics.duplicates[kind]); got != want {
			t.Errorf("%v counted %v times, want %v", kind, got, want)
		}
	}
}

func counterValue(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m)
	return m.GetCounter().GetValue()
}

// TestStoreDownForward has no store at all: messages are POSTed, flagged, and what could not be recorded is counted
// at the end.
func TestStoreDownForward(t *testing.T) {
	j := &journal{}
	b := newBench(t, j, "DEDUP_STORE=redis", "REDIS_URL=redis://127.0.0.1:1", "DEDUP_ON_STORE_DOWN=forward")
	b.deliver(1, "m", "500 200")
	if got := b.settled(t, 1); got[1] != "ack" {
		t.Errorf("settled %v", got)
	}
	if diff := cmp.Diff([]string{"m 1 flagged", "m 2 flagged"}, j.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	b.abort(errGraceOver)
	b.queue.handlers.Wait()
	if got := counterValue(b.queue.metrics.unrecorded); got != 1 {
		t.Errorf("%v unrecorded, want 1", got)
	}
}

func (b *bench) record(t *testing.T, id string) dedup.Record {
	t.Helper()
	key := dedup.Key(b.queue.cfg.Dedup.Prefix, b.queue.cfg.Dedup.Consumer, dedup.ID{Value: id})
	rec, _, err := b.queue.store.Inspect(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// waitUntil polls for a state that no channel tells of.
func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestALeaseNearItsEndPermitsNoPOST ages a lease that nobody renews.
func TestALeaseNearItsEndPermitsNoPOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := dedup.NewMemory()
		defer func() { _ = store.Close() }()
		q := &queue{cfg: QueueConfig{}}
		q.cfg.Dedup.Lease, q.cfg.Forward.Timeout = 30*time.Second, 20*time.Second
		claim, err := store.Claim(t.Context(), dedup.ClaimRequest{
			Key: "k", Token: dedup.NewToken(), Lease: q.cfg.Dedup.Lease, Deadline: q.cfg.Forward.Timeout + claimSlack, Retention: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			age           time.Duration
			fresh, permit bool
		}{
			{0, true, true},
			{999 * time.Millisecond, true, true},
			{1001 * time.Millisecond, false, true}, // a whole request would outlive the deadline on record
			{26 * time.Second, false, true},
			{27*time.Second + time.Millisecond, false, false}, // a tenth is left: the lease counts as lost
			{time.Minute, false, false},
		} {
			time.Sleep(step.age - time.Since(claim.Now.Truncate(0)))
			if fresh, err := q.fresh(claim.Lease), q.permit(claim.Lease); fresh != step.fresh || (err == nil) != step.permit {
				t.Errorf("after %v: fresh %v, permit %v", step.age, fresh, err)
			}
		}
	})
}

func TestLetterKeepsTheMessageAndTellsItsStory(t *testing.T) {
	b := newBench(t, &journal{})
	stamp := time.Unix(1700000000, 0)
	m := &message{seen: time.Unix(1800000000, 0), delivery: &delivery{
		Headers: amqp.Table{
			"a": int32(1), "x-rabbitonce-status": int64(1), "x-rabbitonce-error": "old", "x-delivery-count": int64(3), "CC": []any{"orders"},
		},
		ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 1, Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "60000",
		MessageId: "m", Timestamp: stamp, Type: "t", UserId: "u", AppId: "app", Exchange: "ex", RoutingKey: "rk", Body: []byte("\x00body"),
	}}
	got, _ := b.queue.compose(m, obituary{reason: dedup.ReasonRejected, deadID: "0011223344556677", attempts: 2, status: 422, response: []byte("no\xff")})
	deadAt, _ := got.Headers["x-rabbitonce-dead-at"].(string)
	if at, err := time.Parse(time.RFC3339Nano, deadAt); err != nil || time.Since(at) > time.Minute {
		t.Errorf("dead-at is %q", deadAt)
	}
	want := letter{
		Headers: table{
			"a": int32(1), "x-rabbitonce-reason": "rejected", "x-rabbitonce-attempts": int64(2), "x-rabbitonce-status": int64(422),
			"x-rabbitonce-response": "no?", "x-rabbitonce-queue": "orders", "x-rabbitonce-exchange": "ex", "x-rabbitonce-routing-key": "rk",
			"x-rabbitonce-first-seen": "2027-01-15T08:00:00Z", "x-rabbitonce-dead-at": deadAt, "x-rabbitonce-dead-id": "0011223344556677",
			"x-rabbitonce-cc": []any{"orders"}, "x-rabbitonce-expiration": "60000", "x-rabbitonce-user-id": "u",
		},
		ContentType: "text/x", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 3, CorrelationId: "c", ReplyTo: "r",
		MessageId: "m", Timestamp: stamp, Type: "t", AppId: "app", Body: []byte("\x00body"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("letter (-want +got):\n%s", diff)
	}
	if len(m.Headers) != 5 {
		t.Errorf("the delivery's own headers were changed: %v", m.Headers)
	}
}
