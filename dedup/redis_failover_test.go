package dedup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a fail-over may take on a busy machine.
const patience = 30 * time.Second

func (s *redisServer) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// wantError demands an error with this text in it, or one of several, which |
// separates, where it is not certain which comes first.
func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err != nil {
		for text := range strings.SplitSeq(want, "|") {
			if strings.Contains(err.Error(), text) {
				return
			}
		}
	}
	t.Errorf("%s: %v; want %q", what, err, want)
}

// eventually claims until the store answers, and demands a verdict.
func eventually(t *testing.T, s *Store, r ClaimRequest, want Verdict) Claim {
	t.Helper()
	var c Claim
	err := within(patience, func() (err error) {
		c, err = s.Claim(context.Background(), r)
		return err
	})
	if err != nil || c.Verdict != want {
		t.Fatalf("claim: %v, %v; want %v", c.Verdict, err, want)
	}
	return c
}

func TestASuccessOutlivesAFailover(t *testing.T) {
	tr := newTrio(t)
	cfg := tr.config()
	cfg.WaitReplicas = 1
	s, other := openStore(t, cfg), openStore(t, cfg)
	ctx := context.Background()
	r := request(testKey(t))
	eventually(t, s, r, Claimed)

	// The replica does not answer: recorded, but not safe. However often it is
	// repeated, and whoever repeats it.
	tr.replica.signal(t, syscall.SIGSTOP)
	const unsafe = "only 0 of DEDUP_WAIT_REPLICAS=1"
	wantError(t, "succeed", s.Succeed(ctx, r.Key, 200, payload, keep), unsafe)
	wantError(t, "the repeat", s.Succeed(ctx, r.Key, 200, payload, keep), unsafe)
	wantError(t, "the repeat of another", other.Succeed(ctx, r.Key, 200, payload, keep), unsafe)
	wantError(t, "probe", s.Probe(ctx, testKey(t)), unsafe)
	// What is no success waits for nobody.
	start := time.Now()
	if c, err := s.Claim(ctx, request(r.Key)); err != nil || c.Verdict != Done {
		t.Errorf("claim: %v, %v", c.Verdict, err)
	}
	if took := time.Since(start); took >= replicaTimeout {
		t.Errorf("a claim took %s", took)
	}
	tr.replica.signal(t, syscall.SIGCONT)
	if err := within(patience, func() error { return s.Succeed(ctx, r.Key, 200, payload, keep) }); err != nil {
		t.Fatal(err)
	}

	if err := s.Probe(ctx, testKey(t)); err != nil {
		t.Error(err)
	}

	if err := tr.primary.kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, request(r.Key), Done)
	eventually(t, other, request(testKey(t)), Claimed) // the new primary takes writes

	wantError(t, "succeed without a replica", within(0, func() error {
		return s.Succeed(ctx, testKey(t), 200, payload, keep)
	}), unsafe)
}

// TestADemotedPrimaryIsLeftAtOnce: an address leads to another server, as a
// name or a virtual address does after a fail-over, while old connections stay.
func TestADemotedPrimaryIsLeftAtOnce(t *testing.T) {
	old, promoted := newServer(t), newServer(t)
	proxy := newLossyProxy(t, old.address)
	t.Cleanup(proxy.close)
	s := openStore(t, Config{Store: StoreRedis, RedisURL: Secret("redis://" + proxy.listener.Addr().String())})
	ctx := context.Background()

	// As many connections as the store ever has at a time: the server answers
	// none of the groups before all of them are there.
	if err := newClient(t, old).ClientPause(ctx, replyTimeout/2).Err(); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for range maxInFlight {
		work.Go(func() {
			c := &call{op: operation{word: wordUndead, key: testKey(t)}}
			if s.backend.run(ctx, []*call{c}); c.err != nil {
				t.Error(c.err)
			}
		})
	}
	work.Wait()
	if n := s.backend.(*redisBackend).any.PoolStats().TotalConns; n != maxInFlight {
		t.Fatalf("%d connections, want %d", n, maxInFlight)
	}

	client := newClient(t, old)
	if err := client.Do(ctx, "REPLICAOF", "127.0.0.1", promoted.port()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.lead(promoted.address)
	_, err := s.Claim(ctx, request(testKey(t)))
	wantError(t, "the first claim", err, "this is a replica")
	for range maxInFlight + 1 {
		if c, err := s.Claim(ctx, request(testKey(t))); err != nil || c.Verdict != Claimed {
			t.Errorf("a later claim: %v, %v", c.Verdict, err)
		}
	}
}

func TestAServerThatLoads(t *testing.T) {
	server := newServer(t)
	s := openStore(t, server.config())
	ctx := context.Background()
	r := request(testKey(t))
	eventually(t, s, r, Claimed)
	client := newClient(t, server)
	for i := range 300 {
		if err := client.Set(ctx, fmt.Sprint(i), strings.Repeat("x", 1000), time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Save(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	server.args = append(server.args, "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Claim(ctx, r)
	for err != nil && !strings.Contains(err.Error(), "LOADING") { // connections from before the restart
		_, err = s.Claim(ctx, r)
	}
	wantError(t, "claim", err, "it answers when its data is loaded")
	if c := eventually(t, s, r, Claimed); c.Record.Attempts != 1 {
		t.Errorf("after loading: %+v", c.Record)
	}
}

func TestMemoryThatIsFreed(t *testing.T) {
	server := newServer(t, "--maxmemory", "100kb", "--maxmemory-policy", "noeviction")
	s := openStore(t, server.config())
	ctx := context.Background()
	r := request(testKey(t))
	_, err := s.Claim(ctx, r)
	wantError(t, "claim", err, "raise maxmemory")
	if err := newClient(t, server).ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Claim(ctx, r); err != nil || c.Verdict != Claimed || c.Record.Attempts != 1 {
		t.Errorf("claim: %v, %+v, %v", c.Verdict, c.Record, err)
	}
}

// TestASlotThatMoves takes operations through all stages of a move: before,
// during (ASK), and after (MOVED).
func TestASlotThatMoves(t *testing.T) {
	c := newCluster(t, 0)
	s := openStore(t, c.config())
	waiting := c.config()
	waiting.WaitReplicas = 1
	careful := openStore(t, waiting)
	ctx := context.Background()

	key, slot := keyOn(t, c, 0)
	elsewhere, _ := keyOn(t, c, 2)
	r := request(key)
	eventually(t, s, r, Claimed)
	eventually(t, s, request(elsewhere), Claimed)
	eventually(t, careful, request(elsewhere), Busy)

	from, to := c.primaries[0].client(), c.primaries[1].client()
	defer from.Close()
	defer to.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fromID, err := from.Do(ctx, "CLUSTER", "MYID").Text()
	must(err)
	toID, err := to.Do(ctx, "CLUSTER", "MYID").Text()
	must(err)
	must(to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID).Err())
	must(from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID).Err())
	must(from.Do(ctx, "MIGRATE", "127.0.0.1", c.primaries[1].port(), key, 0, 5000).Err())

	// A group with keys on two nodes, one of them on its way. The target has
	// not seen the script yet.
	group := []*call{
		{op: operation{word: wordClaim, key: elsewhere, token: NewToken(), lease: 1000, deadline: 1000, retention: 60_000}},
		{op: operation{word: wordRenew, key: key, token: r.Token, lease: 60_000, retention: 60_000}},
		{op: operation{word: wordRenew, key: key, token: NewToken(), lease: 60_000, retention: 60_000}},
	}
	s.backend.run(ctx, group)
	for i, want := range []letter{letterBusy, letterApplied, letterNotOurs} {
		if group[i].err != nil || group[i].answer.letter != want {
			t.Errorf("while the slot moves, call %d: %q, %v; want %q", i, group[i].answer.letter, group[i].err, want)
		}
	}
	wantError(t, "a success that replicas must have", careful.Succeed(ctx, key, 200, payload, keep), "its slot is moving")
	if err := s.Succeed(ctx, key, 200, payload, keep); err != nil {
		t.Error("while the slot moves: ", err)
	}

	for _, node := range c.primaries {
		client := node.client()
		must(client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID).Err())
		must(client.Close())
	}
	if got, err := s.Claim(ctx, request(key)); err != nil || got.Verdict != Done {
		t.Errorf("after the move: %v, %v", got.Verdict, err)
	}
	// The new place is known before long: nothing is redirected any more.
	if err := within(patience, func() error {
		return ignoring(careful.Succeed(ctx, key, 200, payload, keep), "only 0 of DEDUP_WAIT_REPLICAS=1")
	}); err != nil {
		t.Error("after the move: ", err)
	}
}

// ignoring drops the error that has this text.
func ignoring(err error, text string) error {
	if err != nil && strings.Contains(err.Error(), text) {
		return nil
	}
	if err == nil {
		return errors.New("no error")
	}
	return err
}

func TestAClusterThatLosesANode(t *testing.T) {
	c := newCluster(t, 1, "--appendonly", "yes", "--appendfsync", "always") // the first primary has a replica
	cfg := c.config()
	cfg.WaitReplicas = 1
	careful, s := openStore(t, cfg), openStore(t, c.config())
	ctx := context.Background()
	onFirst, _ := keyOn(t, c, 0)
	onThird, _ := keyOn(t, c, 2)
	eventually(t, careful, request(onFirst), Claimed)
	eventually(t, s, request(onThird), Claimed)
	if err := within(patience, func() error { return careful.Succeed(ctx, onFirst, 200, payload, keep) }); err != nil {
		t.Fatal(err)
	}

	// Its replica takes over, with what it had to have.
	if err := c.primaries[0].kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, careful, request(onFirst), Done)
	eventually(t, s, request(onThird), Busy)

	// No replica: nothing of the cluster is served until the node is back.
	if err := c.primaries[2].kill(); err != nil {
		t.Fatal(err)
	}
	if err := within(patience, func() error {
		_, err := s.Claim(ctx, request(onFirst))
		return ignoring(err, "CLUSTERDOWN")
	}); err != nil {
		t.Error("without the third node: ", err)
	}
	_, err := s.Claim(ctx, request(onFirst))
	wantError(t, "claim", err, "does not serve all slots")
	if err := c.primaries[2].start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, request(onFirst), Done)
	eventually(t, s, request(onThird), Busy)
}

func TestWrongKindsOfServers(t *testing.T) {
	c, tr := sharedCluster.get(t), sharedTrio.get(t)
	key, _ := keyOn(t, c, 0)
	with := func(cfg Config, change func(*Config)) Config {
		change(&cfg)
		return cfg
	}
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"a node of a cluster as one server": {Config{Store: StoreRedis, RedisURL: Secret("redis://" + c.primaries[1].address)}, "set REDIS_CLUSTER=true"},
		"one server as a cluster":           {with(shared.config(), func(c *Config) { c.RedisCluster = true }), "unset REDIS_CLUSTER"},
		"one server as a sentinel":          {with(shared.config(), func(c *Config) { c.RedisSentinelMaster = "main" }), "no sentinel of REDIS_URL"},
		"another name of the primary":       {with(tr.config(), func(c *Config) { c.RedisSentinelMaster = "other" }), "REDIS_SENTINEL_MASTER"},
		"a sentinel as one server":          {Config{Store: StoreRedis, RedisURL: Secret("redis://" + tr.sentinels[0].address)}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, test.cfg)
			_, err := s.Claim(context.Background(), request(key))
			wantError(t, "claim", err, test.want)
			if _, found, err := s.Inspect(context.Background(), key); err == nil && name != "a sentinel as one server" {
				t.Errorf("inspect: found %v, no error", found)
			}
			s.Advise(context.Background())
		})
	}
}
