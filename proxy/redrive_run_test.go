package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRedriveKeepsToItsRateAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, p := newRedrive(lettersFrom("orders", numbered(50)...)...)
		r.rate = 10
		p.before = func(context.Context, string) error { time.Sleep(20 * time.Millisecond); return nil }
		shown := 0
		r.progress = func(redriveReport) { shown++ }
		if err := r.run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(numbered(50), p.source); diff != "" {
			t.Errorf("put back (-want +got):\n%s", diff)
		}
		if took := p.at[49].Sub(p.at[0]); took != 4900*time.Millisecond || p.most != 1 {
			t.Errorf("50 letters at 10 a second took %v, %d under way at once", took, p.most)
		}
		if len(s.left()) > 0 || shown != 4 {
			t.Errorf("left %v, progress shown %d times", s.left(), shown)
		}
	})
}

func TestRedriveWithoutRatePublishesSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, p := newRedrive(lettersFrom("orders", numbered(100)...)...)
		p.before = func(context.Context, string) error { time.Sleep(time.Millisecond); return nil }
		if err := r.run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(p.source)
		if diff := cmp.Diff(numbered(100), p.source); diff != "" || p.most != redriveWidth || len(s.left()) > 0 {
			t.Errorf("%d under way at once, left %v, put back (-want +got):\n%s", p.most, s.left(), diff)
		}
	})
}

// TestRedriveEnds: letters that die again meanwhile are not looked at.
func TestRedriveEnds(t *testing.T) {
	r, s, p := newRedrive(lettersFrom("orders", "a", "b", "c")...)
	r.rate = 1e6
	p.before = func(_ context.Context, id string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ready = append(s.ready, lettersFrom("orders", id)...)
		return nil
	}
	if err := r.run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, p.source); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
}

// TestRedriveIsNotOvertaken: a letter with a priority that dies again at once comes before the others, and does not go back
// in their place.
func TestRedriveIsNotOvertaken(t *testing.T) {
	for _, holdable := range []bool{true, false} {
		r, s, p := newRedrive(lettersFrom("orders", "a", "b", "c", "d")...)
		r.rate, r.rotating = 1e6, !holdable
		p.before = func(_ context.Context, id string) error { // one at a time, by the rate
			s.mu.Lock()
			defer s.mu.Unlock()
			if again := lettersFrom("orders", id); id == "a" && len(p.source) == 0 {
				again[0].Headers["x-rabbitonce-dead-at"] = time.Now().Add(time.Second).Format(time.RFC3339Nano)
				s.ready = append(again, s.ready...)
			}
			return nil
		}
		if err := r.run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{"a", "b", "c", "d"}
		if !holdable { // it counts as one of them then, so that there is an end
			want = want[:3]
		}
		if diff := cmp.Diff(want, p.source); diff != "" || r.report.DiedSince != 1 || len(s.left()) != 5-len(want) {
			t.Errorf("holdable %t: died since %d, put back (-want +got):\n%s", holdable, r.report.DiedSince, diff)
		}
	}
}

func TestRedriveLimit(t *testing.T) {
	for _, rate := range []float64{0, 1e6} {
		r, s, p := newRedrive(slices.Concat(lettersFrom("billing", "x"), lettersFrom("orders", numbered(9)...))...)
		r.rate, r.limit = rate, 3
		if err := r.run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(p.source) != 3 || len(s.left()) != 7 || r.report.PutBack != 3 {
			t.Errorf("rate %v: put back %v, left %v", rate, p.source, s.left())
		}
	}
}

// TestRedriveLeavesTheRest: letters that do not go back are held, and are where they were.
func TestRedriveLeavesTheRest(t *testing.T) {
	letters := slices.Concat(lettersFrom("orders", "a", "b"), lettersFrom("billing", "c"), []delivery{{MessageId: "stranger"}}, lettersFrom("orders", "d"))
	letters[1].Headers["x-rabbitonce-reason"] = "unknown-outcome"
	r, s, p := newRedrive(letters...)
	r.reasons = []string{"rejected"}
	if err := r.run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(p.source)
	if diff := cmp.Diff([]string{"a", "d"}, p.source); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "c", "stranger"}, s.left()); diff != "" || len(s.taken) != 3 {
		t.Errorf("left, %d of them held (-want +got):\n%s", len(s.taken), diff)
	}
	if got := r.report; got.OtherQueues != 2 || got.NotSelected != 1 || got.PutBack != 2 || got.LookedAt != 5 || got.MovedToEnd != 0 {
		t.Errorf("report %+v", got)
	}
}

// TestRedriveMovesWhatItCannotHold: each of these would be lost or too much when it was held.
func TestRedriveMovesWhatItCannotHold(t *testing.T) {
	often := lettersFrom("billing", "a", "b", "c")
	often[1].Redelivered, often[1].Headers["x-delivery-count"] = true, int64(returnsLimit)
	big := lettersFrom("billing", "a", "b", "c")
	big[0].Body, big[1].Body = make([]byte, mostHeldBytes-10), make([]byte, 20)
	for name, tt := range map[string]struct {
		letters []delivery
		moved   []string
	}{
		"that came back often": {often, []string{"b"}},
		"that are big":         {big, []string{"b"}},
		"that are many":        {lettersFrom("billing", numbered(mostHeld+2)...), []string{fmt.Sprint("0", mostHeld), fmt.Sprint("0", mostHeld+1)}},
	} {
		for _, dry := range []bool{false, true} {
			r, s, _ := newRedrive(tt.letters...)
			r.dry, r.rate = dry, 1e6 // in order
			if dry {
				r.queue = "billing" // all would go back
			}
			if err := r.run(t.Context(), t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.moved, s.acked); diff != "" || r.report.MovedToEnd != len(tt.moved) {
				t.Errorf("letters %s, dry %t: report %+v, moved (-want +got):\n%s", name, dry, r.report, diff)
			}
			if len(s.left()) != len(tt.letters) {
				t.Errorf("letters %s, dry %t: %d of %d left", name, dry, len(s.left()), len(tt.letters))
			}
		}
	}
}

// TestRedriveHoldsNothingForLong: the broker would close the channel.
func TestRedriveHoldsNothingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		letters := slices.Concat(lettersFrom("billing", "a", "b"), lettersFrom("orders", numbered(20)...), lettersFrom("billing", "c"))
		r, s, p := newRedrive(letters...)
		r.rate = 1.0 / 60
		if err := r.run(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, d := range s.ready {
			order = append(order, d.MessageId)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" || len(s.taken) > 0 {
			t.Errorf("%d held, at the end of the queue (-want +got):\n%s", len(s.taken), diff)
		}
		if diff := cmp.Diff(numbered(20), p.source); diff != "" {
			t.Errorf("put back (-want +got):\n%s", diff)
		}
	})
}

func TestRedriveDryRun(t *testing.T) {
	r, s, p := newRedrive(lettersFrom("orders", "a", "b")...)
	r.dry = true
	var listed []string
	r.list = func(l deadLetter) { listed = append(listed, l.id) }
	if err := r.run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, listed); diff != "" || len(p.source)+len(s.acked) > 0 || r.report.PutBack != 2 {
		t.Errorf("put back %v, acknowledged %v, report %+v, listed (-want +got):\n%s", p.source, s.acked, r.report, diff)
	}
}

// TestRedriveStopsAtTrouble: what is not confirmed stays; what is confirmed is acknowledged.
func TestRedriveStopsAtTrouble(t *testing.T) {
	full := errors.New("the queue is full")
	for _, rate := range []float64{0, 1e6} {
		r, s, p := newRedrive(lettersFrom("orders", numbered(20)...)...)
		r.rate = rate
		p.before = func(_ context.Context, id string) error {
			if id == "00007" {
				return full
			}
			return nil
		}
		err := r.run(t.Context(), t.Context())
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "00007") {
			t.Errorf("rate %v: error %v", rate, err)
		}
		sent, acked := slices.Sorted(slices.Values(p.source)), slices.Sorted(slices.Values(s.acked))
		if diff := cmp.Diff(sent, acked); diff != "" || slices.Contains(acked, "00007") {
			t.Errorf("rate %v: acknowledged (-confirmed +acknowledged):\n%s", rate, diff)
		}
		if rate > 0 && len(sent) != 7 || len(s.left())+len(sent) != 20 {
			t.Errorf("rate %v: put back %v, left %v", rate, sent, s.left())
		}
	}
	r, s, _ := newRedrive(lettersFrom("orders", "a")...)
	s.ackFail = full
	if err := r.run(t.Context(), t.Context()); !errors.Is(err, full) || !strings.Contains(err.Error(), "both queues") {
		t.Errorf("an acknowledgement that fails: %v", err)
	}
	r, s, _ = newRedrive(lettersFrom("orders", "a")...)
	s.broken = errors.New("connection closed")
	if err := r.run(t.Context(), t.Context()); !errors.Is(err, s.broken) {
		t.Errorf("a broker that is gone: %v", err)
	}
}

// TestRedriveInterrupted: the publish under way is finished, the rest stays, whatever it waited for.
func TestRedriveInterrupted(t *testing.T) {
	for name, rate := range map[string]float64{"in a publish": 0, "in a pause": 1} {
		synctest.Test(t, func(t *testing.T) {
			r, s, p := newRedrive(lettersFrom("orders", numbered(20)...)...)
			r.rate = rate
			p.before = func(context.Context, string) error { time.Sleep(100 * time.Millisecond); return nil }
			ctx, stop := context.WithTimeout(t.Context(), 2550*time.Millisecond)
			if rate == 0 {
				ctx, stop = context.WithTimeout(t.Context(), 150*time.Millisecond)
			}
			defer stop()
			if err := r.run(ctx, t.Context()); !errors.Is(err, errInterrupted) {
				t.Errorf("%s: error %v", name, err)
			}
			want := map[string]int{"in a publish": 2 * redriveWidth, "in a pause": 3}[name]
			if len(p.source) != want || len(s.acked) != want || len(s.left()) != 20-want || r.report.PutBack != want {
				t.Errorf("%s: put back %v, acknowledged %v, left %v", name, p.source, s.acked, s.left())
			}
		})
	}
}

// TestRedriveGivesUpOnAStuckBroker: the end of hard ends a publish that nobody confirms, and its letter stays.
func TestRedriveGivesUpOnAStuckBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, p := newRedrive(lettersFrom("orders", "a", "b")...)
		r.rate = 100
		p.before = func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) }
		soft, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		hard, end := context.WithTimeout(t.Context(), time.Minute+redriveGrace)
		defer end()
		began := time.Now()
		err := r.run(soft, hard)
		if !errors.Is(err, errInterrupted) || time.Since(began) != time.Minute+redriveGrace {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		if diff := cmp.Diff([]string{"a", "b"}, s.left()); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	})
}
