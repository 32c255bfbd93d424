package dedup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStoresShareAMemory claims in one store and finds it in another; the way of one loses an answer, and then its way back is
// cut before anything has happened.
func TestStoresShareAMemory(t *testing.T) {
	var states []State
	memory := SharedMemory(func(w Written) {
		if w.Key == "k" && w.Record != nil {
			states = append(states, w.Record.State)
		}
	})
	errLost := errors.New("lost")
	arrives, returns := true, true
	way := func(_ context.Context, trip func()) error {
		if arrives {
			trip()
		}
		if !arrives || !returns {
			return errLost
		}
		return nil
	}
	open := func(m *Memory) *Store {
		s, err := New(Config{Store: StoreMemory, Memory: func() *Memory { return m }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, other := open(memory.By(way)), open(memory)
	defer func() { _, _ = one.Close(), other.Close() }()
	request := ClaimRequest{Key: "k", Token: NewToken(), Lease: time.Minute, Deadline: time.Minute, Retention: time.Hour}

	arrives = false
	if _, err := one.Claim(t.Context(), request); !errors.Is(err, errLost) {
		t.Fatalf("a claim that did not arrive: %v", err)
	}
	if _, found, _ := other.Inspect(t.Context(), "k"); found {
		t.Fatal("it has happened")
	}
	arrives, returns = true, false
	if _, err := one.Claim(t.Context(), request); !errors.Is(err, errLost) {
		t.Fatalf("a claim whose answer was lost: %v", err)
	}
	theirs := request
	theirs.Token = NewToken()
	if c, err := other.Claim(t.Context(), theirs); err != nil || c.Verdict != Busy {
		t.Errorf("the other store: %v, %v", c.Verdict, err)
	}
	returns = true
	c, err := one.Claim(t.Context(), request)
	if err != nil || c.Verdict != Claimed || c.Record.Attempts != 1 {
		t.Errorf("the repeat: %v, %+v", err, c)
	}
	if err := other.Succeed(t.Context(), "k", 200, payload, time.Hour); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]State{StateProcessing, StateProcessing, StateDone}, states); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if err := one.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
