package dedup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// look demands an answer.
func (b *bench) look() Sighting {
	b.Helper()
	seen, err := b.store.Look(context.Background(), b.key)
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

func (b *bench) forget(seen Sighting, want bool) {
	b.Helper()
	forgotten, err := b.store.Forget(context.Background(), seen)
	if err != nil {
		b.Fatal(err)
	}
	if forgotten != want {
		b.Fatalf("forget: %v, want %v (seen %+v)", forgotten, want, seen)
	}
}

// inEveryState prepares a record of each kind.
func inEveryState() map[string]func(*bench) {
	return map[string]func(*bench){
		"processing": func(b *bench) { b.claim(Claimed) },
		"taken over": func(b *bench) { b.claim(Claimed); b.travel(2 * deadline); b.claim(Claimed) },
		"waiting":    func(b *bench) { b.wait(b.claim(Claimed).Lease, time.Minute, WaitUnknown, Applied) },
		"done":       func(b *bench) { b.claim(Claimed); b.succeed(204) },
		"done late":  func(b *bench) { b.wait(b.claim(Claimed).Lease, 0, WaitDeferred, Applied); b.succeed(200) },
		"dead":       func(b *bench) { b.bury(b.claim(Claimed).Lease, NewDeadID(), true, Applied) },
	}
}

func TestLookTellsWhatInspectTells(t *testing.T) {
	for name, prepare := range inEveryState() {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(b *bench) {
				prepare(b)
				seen := b.look()
				if !seen.Found || seen.Key != b.key {
					b.Fatalf("sighting %+v", seen)
				}
				b.same(seen.Record)
				// A waiting record outlives its wait by the retention.
				if seen.Left <= keep-time.Minute || seen.Left > keep+time.Minute {
					b.Errorf("expires in %v, want about %v", seen.Left, keep)
				}
				if age := seen.Now.Sub(seen.Record.FirstClaimed); age < 0 || age > 3*deadline {
					b.Errorf("first claimed %v ago by the store's clock", age)
				}
				if want := name == "processing" || name == "taken over"; seen.Live() != want {
					b.Errorf("live: %v", seen.Live())
				}
				if again := b.look(); !cmp.Equal(seen.Record, again.Record) {
					b.Errorf("looking changed the record: %+v", again)
				}
			})
		})
	}
}

func TestAClaimIsLiveUntilLeaseAndDeadlineAreOver(t *testing.T) {
	eachStore(t, func(b *bench) {
		b.claim(Claimed)
		for _, step := range []struct {
			passed time.Duration
			live   bool
		}{{0, true}, {lease + time.Second, true}, {deadline - lease, false}} { // the request outlives the lease
			b.travel(step.passed)
			if seen := b.look(); seen.Live() != step.live {
				b.Errorf("after %v more: live %v (%+v at %v)", step.passed, seen.Live(), seen.Record, seen.Now)
			}
		}
	})
}

func TestLookAtNothing(t *testing.T) {
	eachStore(t, func(b *bench) {
		seen := b.look()
		want := Sighting{Key: b.key, Now: seen.Now}
		if diff := cmp.Diff(want, seen, cmpopts.IgnoreUnexported(Sighting{})); diff != "" {
			b.Errorf("(-want +got):\n%s", diff)
		}
		if seen.Live() || time.Since(seen.Now).Abs() > time.Minute {
			b.Errorf("sighting of nothing: %+v", seen)
		}
		b.forget(seen, false)
	})
}

func TestForgetDeletesWhatWasSeen(t *testing.T) {
	for name, prepare := range inEveryState() {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(b *bench) {
				prepare(b)
				seen := b.look()
				b.forget(seen, true)
				b.absent()
				b.forget(seen, false) // it is gone
				b.claim(Claimed)
				b.counts(counters{State: StateProcessing, Attempts: 1})
				b.forget(seen, false) // another one by now
				b.counts(counters{State: StateProcessing, Attempts: 1})
			})
		})
	}
}

func TestForgetKeepsWhatChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(*bench, Claim){
		"a renewal":    func(b *bench, c Claim) { b.travel(time.Second); b.renew(c) },
		"a success":    func(b *bench, c Claim) { b.succeed(200) },
		"a wait":       func(b *bench, c Claim) { b.wait(c.Lease, 0, WaitFailed, Applied) },
		"a bury":       func(b *bench, c Claim) { b.bury(c.Lease, NewDeadID(), false, Applied) },
		"a new holder": func(b *bench, c Claim) { b.travel(2 * deadline); b.claim(Claimed) },
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(b *bench) {
				c := b.claim(Claimed)
				seen := b.look()
				change(b, c)
				before := b.record()
				b.forget(seen, false)
				b.same(before)
			})
		})
	}
}

// renew renews as the keeper does.
func (b *bench) renew(c Claim) {
	b.Helper()
	op := c.Lease.operation(wordRenew)
	op.lease = milliseconds(lease)
	b.settled(b.store.settle(context.Background(), op))(Applied)
}

func TestAHolderThatWasForgottenLosesItsRecord(t *testing.T) {
	eachStore(t, func(b *bench) {
		c := b.claim(Claimed)
		b.forget(b.look(), true)
		b.wait(c.Lease, 0, WaitUnknown, NotOurs)
		b.absent()
		b.succeed(200) // it is a fact all the same
		b.counts(counters{State: StateDone, Attempts: 1})
	})
}

func TestLookAndForgetWithForeignKeys(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(b *bench) {
		b.claim(Claimed)
		seen := b.look()
		for _, foreign := range []string{"", "garbage", "p"} {
			b.put(b.key, foreign)
			if _, err := b.store.Look(ctx, b.key); !errors.Is(err, ErrForeignRecord) {
				b.Errorf("look at %q: %v", foreign, err)
			}
			if forgotten, err := b.store.Forget(ctx, seen); err == nil || forgotten {
				b.Errorf("forget %q: %v, %v", foreign, forgotten, err)
			}
			if value, _ := b.raw(b.key); value != foreign {
				b.Errorf("%q became %q", foreign, value)
			}
		}
	})
	t.Run("a list", func(t *testing.T) {
		client, key := newClient(t, shared), testKey(t)
		if err := client.RPush(ctx, key, "x").Err(); err != nil {
			t.Fatal(err)
		}
		defer client.Del(ctx, key)
		if _, err := openStore(t, shared.config()).Look(ctx, key); !errors.Is(err, ErrForeignRecord) {
			t.Errorf("look: %v", err)
		}
	})
}

func TestLookWithoutAStore(t *testing.T) {
	s := openStore(t, Config{Store: StoreRedis, RedisURL: "redis://127.0.0.1:1"})
	if seen, err := s.Look(context.Background(), "k"); err == nil || errors.Is(err, ErrForeignRecord) {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestLookWithoutPermissionForTheExpiry(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	client := newClient(t, server)
	if err := client.Do(ctx, documentedUser(t)...).Err(); err != nil {
		t.Fatal(err)
	}
	cfg := server.config()
	cfg.RedisUsername, cfg.RedisPassword = "rabbitonce", "secret"
	s := openStore(t, cfg)
	r := request("rabbitonce:c:" + NewDeadID())
	if _, err := s.Claim(ctx, r); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Look(ctx, r.Key)
	if err != nil || !seen.Found || seen.Left != 0 {
		t.Errorf("without +pttl: %+v, %v", seen, err)
	}
	if forgotten, err := s.Forget(ctx, seen); err != nil || !forgotten {
		t.Errorf("forget: %v, %v", forgotten, err)
	}
	if n, err := client.Exists(ctx, r.Key).Result(); err != nil || n != 0 {
		t.Errorf("%d keys left, %v", n, err)
	}
	if err := client.Do(ctx, "ACL", "SETUSER", "rabbitonce", "+pttl").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, r); err != nil {
		t.Fatal(err)
	}
	if seen, err := s.Look(ctx, r.Key); err != nil || seen.Left <= 0 {
		t.Errorf("with +pttl: %+v, %v", seen, err)
	}
}

func TestCandidates(t *testing.T) {
	config := func(from string, missing MissingPolicy) *QueueConfig {
		return &QueueConfig{IDFrom: ParseSources(from), OnMissingID: missing}
	}
	for name, c := range map[string]struct {
		config *QueueConfig
		want   []ID
	}{
		"the default":    {config("message-id,header:x-message-id", MissingDeadletter), []ID{{Value: "one"}, {"header:x-message-id", "one"}}},
		"hash by policy": {config("message-id", MissingHash), []ID{{Value: "one"}, {"hash", "one"}}},
		"hash twice":     {config("message-id,hash", MissingHash), []ID{{Value: "one"}, {"hash", "one"}}},
		"hash first":     {config("hash", MissingHash), []ID{{Value: "one"}}},
	} {
		if diff := cmp.Diff(c.want, c.config.Candidates("one")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	c := config("message-id,header:x-id", MissingDeadletter)
	for source, want := range map[string]ID{
		"message-id": {Value: "one"}, "header:x-id": {"header:x-id", "one"}, "json:/id": {"json:/id", "one"}, "hash": {"hash", "one"},
	} {
		got, err := c.Candidate(source, "one")
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
		if place := c.Place(got); place != source {
			t.Errorf("%s is placed at %s", source, place)
		}
	}
	if id, err := c.Candidate("message_id", "one"); err == nil {
		t.Errorf("a place that there is none: %+v", id)
	}
}

// TestCandidatesAreWhatIdentifyFinds: an ID is looked for where a message with it is recorded.
func TestCandidatesAreWhatIdentifyFinds(t *testing.T) {
	c := &QueueConfig{IDFrom: ParseSources("message-id,correlation-id,header:x-id,json:/id,hash")}
	e := Envelope{MessageID: "v", CorrelationID: "v", Headers: map[string]any{"x-id": "v"}, Body: []byte(`{"id":"v"}`)}
	for _, blank := range []func(){
		func() {}, func() { e.MessageID = "" }, func() { e.CorrelationID = "" }, func() { e.Headers = nil }, func() { e.Body = nil },
	} {
		blank()
		id, ok := c.IDFrom.Identify(e)
		if !ok {
			t.Fatal("no ID")
		}
		found := false
		for _, candidate := range c.Candidates(id.Value) {
			found = found || candidate == id
		}
		if !found {
			t.Errorf("%+v is not among %+v", id, c.Candidates(id.Value))
		}
	}
}

func TestCheckID(t *testing.T) {
	for value, ok := range map[string]bool{"one": true, "": false, " \t": false, "\x00": false, "%": true, ":": true} {
		if err := CheckID(value); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}
