package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
