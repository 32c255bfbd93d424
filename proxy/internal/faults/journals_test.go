package faults

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// TestStoreLogHasEveryChange: what the store's own log says of a record is what happened to it, over a restart of the store.
func TestStoreLogHasEveryChange(t *testing.T) {
	ctx := t.Context()
	redis, err := testkit.StartRedis(ctx, testkit.RedisOptions{Args: storeArgs})
	must(t, err)
	defer func() { must(t, redis.Close()) }()
	log := newStoreLog(redis)
	id := check.ID{Queue: retryQueue, Value: "a"}
	ids := keys([]check.Publication{{ID: id}})
	var key string
	for key = range ids {
	}
	act := func(do func(*dedup.Store)) {
		store, err := dedup.New(dedup.Config{Store: dedup.StoreRedis, RedisURL: dedup.Secret(redis.URL)})
		must(t, err)
		do(store)
		must(t, store.Close())
	}
	request := dedup.ClaimRequest{Key: key, Token: dedup.NewToken(), Lease: lease, Deadline: timeout, Retention: retention}
	began := time.Now().Add(-time.Millisecond)
	act(func(s *dedup.Store) {
		claim, err := s.Claim(ctx, request)
		must(t, err)
		_, err = s.Wait(ctx, claim.Lease, 0, dedup.WaitUnknown)
		must(t, err)
	})
	must(t, redis.Kill())
	must(t, redis.Start(ctx))
	act(func(s *dedup.Store) { must(t, s.Succeed(ctx, key, http.StatusOK, 0, retention)) })
	got, err := log.take(ids)
	must(t, err)
	var states []check.State
	for _, w := range got {
		states = append(states, w.State)
		if w.ID != id || w.At.Before(began) || w.At.After(time.Now().Add(time.Millisecond)) {
			t.Errorf("%+v: not of this time", w)
		}
	}
	if diff := cmp.Diff([]check.State{check.Processing, check.Waiting, check.Done}, states); diff != "" {
		t.Fatalf("states (-want +got):\n%s", diff)
	}
	if got[0].Attempts != 1 || got[0].Unknown || got[0].Token == "" || !got[1].Unknown || !got[2].Unknown {
		t.Errorf("%+v", got)
	}
	if more, err := log.take(ids); err != nil || len(more) != 0 {
		t.Errorf("read again: %v, %v", more, err)
	}
}

// TestEveryRequestHasItsEntry: what the service saw belongs to a request on the wire, and a hole in a journal is an error.
func TestEveryRequestHasItsEntry(t *testing.T) {
	now := time.Now()
	id := check.ID{Queue: retryQueue, Value: "a"}
	entry := func(attempt string, worked time.Time) testkit.Entry {
		e := testkit.Entry{Began: now, Worked: worked, Ended: now.Add(2 * time.Second), Status: 200}
		e.Key, e.Attempt, e.Header = id.Value, attempt, http.Header{processHeader: {"r1.1"}}
		return e
	}
	w := &wire{}
	for _, attempt := range []string{"1", "2"} {
		w.note([]byte("POST /work HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nRabbitMQ-Queue: retry\r\n"+processHeader+": r1.1\r\nDelivery-Attempt: "+attempt+"\r\n\r\nbody"), now)
	}
	sent, err := w.take()
	must(t, err)
	got, err := joined(sent, []testkit.Entry{entry("2", now.Add(time.Second))})
	must(t, err)
	want := []check.Request{
		{ID: id, Process: "r1.1", Attempt: 1, Sent: now},
		{ID: id, Process: "r1.1", Attempt: 2, Sent: now, Began: now, Ended: now.Add(time.Second), Worked: true, Status: 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, err := joined(sent, []testkit.Entry{entry("3", time.Time{})}); err == nil {
		t.Error("an entry without a request: no error")
	}
	w.note([]byte("POST /work HTTP/1.1\r\nHost: x\r\nDelivery-Attempt: many\r\n\r\n"), now)
	if _, err := w.take(); err == nil {
		t.Error("a request without its number: no error")
	}
}

// TestPayloadsTellMessagesApart: a letter whose message has changed anywhere is another one.
func TestPayloadsTellMessagesApart(t *testing.T) {
	original := amqp.Publishing{MessageId: "a", Body: []byte("x"), Headers: amqp.Table{"n": int32(1)}, Priority: 1}
	same := original
	same.Headers = amqp.Table{"n": int32(1), "x-rabbitonce-reason": "rejected"}
	if payloadOf(original) != payloadOf(same) {
		t.Error("what the program adds makes another message of it")
	}
	for name, change := range map[string]func(*amqp.Publishing){
		"body": func(m *amqp.Publishing) { m.Body = []byte("y") }, "type of a header": func(m *amqp.Publishing) { m.Headers = amqp.Table{"n": int64(1)} },
		"priority": func(m *amqp.Publishing) { m.Priority = 2 }, "lost header": func(m *amqp.Publishing) { m.Headers = nil },
	} {
		other := original
		if change(&other); payloadOf(original) == payloadOf(other) {
			t.Errorf("%s: no difference", name)
		}
	}
}

// TestEditsFindTheirPlace: a mutation that no longer fits the source is an error, not a program as it is.
func TestEditsFindTheirPlace(t *testing.T) {
	list := t.TempDir() + "/overlay.json"
	root, err := testkit.ModuleRoot(t.Context())
	must(t, err)
	for _, m := range mutations() {
		if err := writeOverlay(list, root, m.edits); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if err := writeOverlay(list, root, []edit{{"main.go", "no such text", ""}}); err == nil {
		t.Error("an edit without its place: no error")
	}
	text, err := os.ReadFile(list)
	if err != nil || !strings.Contains(string(text), "Replace") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestLongRunsHaveToHit: a long run that hit next to nothing with a kind of fault proves nothing about it.
func TestLongRunsHaveToHit(t *testing.T) {
	s := summary{took: longRun, parked: 1, hit: map[string]int{}}
	for _, l := range lanes() {
		for _, k := range l.kinds {
			s.hit[k.name] = enough
		}
	}
	if err := s.conclusive(); err != nil {
		t.Error(err)
	}
	s.hit["kill -9"]--
	if err := s.conclusive(); err == nil || !strings.Contains(err.Error(), "kill -9") {
		t.Errorf("19 requests hit: %v", err)
	}
	s.took--
	if err := s.conclusive(); err != nil {
		t.Errorf("a short run: %v", err)
	}
	s.took, s.hit["kill -9"], s.parked = longRun, enough, 0
	if err := s.conclusive(); err == nil {
		t.Error("no message took a wait queue: no error")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
