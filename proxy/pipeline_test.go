package proxy

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/dedup"
)

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
