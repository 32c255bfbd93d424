package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

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

func counterValue(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m)
	return m.GetCounter().GetValue()
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
