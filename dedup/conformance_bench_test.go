package dedup

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// bench is one store under test, and one key in it.
type bench struct {
	*testing.T
	store *Store
	key   string
	// raw and put look behind the store's back; put keeps the key's expiry.
	raw func(key string) (string, bool)
	put func(key, value string)
}

// eachStore runs a test on every kind of store.
func eachStore(t *testing.T, test func(*bench)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(memoryBench(t)) })
	t.Run("redis", func(t *testing.T) { test(redisBench(t)) })
	t.Run("cluster", func(t *testing.T) {
		c := sharedCluster.get(t)
		test(benchOn(t, c.config(), c.client()))
	})
	t.Run("sentinel", func(t *testing.T) {
		tr := sharedTrio.get(t)
		test(benchOn(t, tr.config(), tr.primary.client()))
	})
}

func memoryBench(t *testing.T) *bench {
	s := openStore(t, Config{Store: StoreMemory})
	m := s.backend.(*memory)
	return &bench{
		T: t, store: s, key: testKey(t),
		raw: func(key string) (string, bool) {
			value, found, _ := m.get(context.Background(), key)
			return value, found
		},
		put: func(key, value string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.entries[key] = entry{value, m.entries[key].expires}
		},
	}
}

func redisBench(t *testing.T) *bench {
	return benchOn(t, shared.config(), shared.client())
}

// benchOn looks behind the store's back with a client of its own.
func benchOn(t *testing.T, cfg Config, client redis.UniversalClient) *bench {
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{
		T: t, store: openStore(t, cfg), key: testKey(t),
		raw: func(key string) (string, bool) {
			value, err := client.Get(context.Background(), key).Result()
			if err != nil && err != redis.Nil {
				t.Fatal(err)
			}
			return value, err == nil
		},
		put: func(key, value string) {
			if err := client.Set(context.Background(), key, value, redis.KeepTTL).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// travel lets time pass for the record: all its times move into the past.
func (b *bench) travel(d time.Duration) {
	b.Helper()
	value, found := b.raw(b.key)
	if !found {
		return
	}
	r, err := parseRecord(value, time.Now().UnixMilli())
	if err != nil {
		b.Fatal(err)
	}
	r.shift(d.Milliseconds())
	b.put(b.key, string(appendRecord(nil, r)))
}

// shift moves every time that the record has into the past.
func (r *record) shift(ms int64) {
	r.first -= ms
	switch r.state {
	case StateProcessing:
		r.leaseUntil -= ms
		r.deadline -= ms
	case StateWaiting:
		r.notBefore -= ms
	case StateDone:
		r.at -= ms
	case StateDead:
		r.at -= ms
		r.notBefore -= ms
	}
	if r.previous != nil {
		r.previous.shift(ms)
	}
}

func (b *bench) request(token Token) ClaimRequest {
	return ClaimRequest{
		Key: b.key, Token: token, Fingerprint: payload, Compare: true,
		Lease: lease, Deadline: deadline, Retention: keep,
	}
}

// claimAs claims and demands a verdict.
func (b *bench) claimAs(r ClaimRequest, want Verdict) Claim {
	b.Helper()
	c, err := b.store.Claim(context.Background(), r)
	if err != nil {
		b.Fatal(err)
	}
	if c.Verdict != want {
		b.Fatalf("claim: got %v, want %v (record %+v)", c.Verdict, want, c.Record)
	}
	if (c.Lease != nil) != (want == Claimed) {
		b.Fatalf("claim: verdict %v with lease %v", c.Verdict, c.Lease)
	}
	return c
}

// claim claims anew, as another delivery would.
func (b *bench) claim(want Verdict) Claim {
	b.Helper()
	return b.claimAs(b.request(NewToken()), want)
}

func (b *bench) settled(got Settlement, err error) func(Settlement) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return func(want Settlement) {
		b.Helper()
		if got != want {
			b.Fatalf("settle: got %v, want %v", got, want)
		}
	}
}

func (b *bench) wait(l *Lease, delay time.Duration, class WaitClass, want Settlement) {
	b.Helper()
	b.settled(b.store.Wait(context.Background(), l, delay, class))(want)
}

func (b *bench) bury(l *Lease, deadID string, unknown bool, want Settlement) {
	b.Helper()
	b.settled(b.store.Bury(context.Background(), l, ReasonRejected, deadID, unknown))(want)
}

func (b *bench) release(l *Lease, want Settlement) {
	b.Helper()
	b.settled(b.store.Release(context.Background(), l))(want)
}

func (b *bench) succeed(status int) {
	b.Helper()
	if err := b.store.Succeed(context.Background(), b.key, status, payload, keep); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) undead(deadID string) {
	b.Helper()
	if err := b.store.Undead(context.Background(), b.key, deadID); err != nil {
		b.Fatal(err)
	}
}

// record returns what the store has, and demands that there is something.
func (b *bench) record() Record {
	b.Helper()
	r, found, err := b.store.Inspect(context.Background(), b.key)
	if err != nil || !found {
		b.Fatalf("inspect: found %v, %v", found, err)
	}
	return r
}

func (b *bench) absent() {
	b.Helper()
	if r, found, err := b.store.Inspect(context.Background(), b.key); err != nil || found {
		b.Fatalf("inspect: want no record, got %+v, %v", r, err)
	}
}

// same demands that nothing changed; times behind a pointer of the record are
// compared as well.
func (b *bench) same(want Record) {
	b.Helper()
	if diff := cmp.Diff(want, b.record()); diff != "" {
		b.Fatalf("the record changed (-want +got):\n%s", diff)
	}
}

// counters are the parts of a record that outlive its states.
type counters struct {
	State                       State
	Attempts, Deferred, Unknown int
	EverUnknown                 bool
}

func (b *bench) counts(want counters) {
	b.Helper()
	r := b.record()
	got := counters{r.State, r.Attempts, r.Deferred, r.Unknown, r.EverUnknown}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("record (-want +got):\n%s", diff)
	}
}
