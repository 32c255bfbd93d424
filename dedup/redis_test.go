package dedup

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

func request(key string) ClaimRequest {
	return ClaimRequest{
		Key: key, Token: NewToken(), Fingerprint: payload, Compare: true,
		Lease: lease, Deadline: deadline, Retention: keep,
	}
}

func TestAClaimWhoseAnswerWasLostIsOurs(t *testing.T) {
	proxy := newLossyProxy(t, shared.address)
	t.Cleanup(proxy.close)
	s := openStore(t, Config{Store: StoreRedis, RedisURL: Secret("redis://" + proxy.listener.Addr().String())})
	r := request(testKey(t))
	ctx := context.Background()

	proxy.loseAnswerTo("claim")
	if c, err := s.Claim(ctx, r); err == nil {
		t.Fatalf("the answer was lost, but: %+v", c)
	}
	if proxy.lost() != 1 {
		t.Fatal("no answer was lost")
	}
	if record, found, err := s.Inspect(ctx, r.Key); err != nil || !found || record.State != StateProcessing {
		t.Fatalf("the server did not see the claim: %+v, %v", record, err)
	}
	if other, err := s.Claim(ctx, request(r.Key)); err != nil || other.Verdict != Busy {
		t.Fatalf("another claim: %v, %v", other.Verdict, err)
	}
	again, err := s.Claim(ctx, r)
	if err != nil || again.Verdict != Claimed || again.Record.Attempts != 1 || again.Record.EverUnknown {
		t.Fatalf("the repeat: %v, %+v, %v", again.Verdict, again.Record, err)
	}

	// A success whose answer was lost is recorded, and its repeat says so.
	proxy.loseAnswerTo("succeed")
	if err := s.Succeed(ctx, r.Key, 200, payload, keep); err == nil {
		t.Fatal("succeed: the answer was lost, but no error")
	}
	if err := s.Succeed(ctx, r.Key, 500, payload, keep); err != nil {
		t.Fatal(err)
	}
	if record, _, _ := s.Inspect(ctx, r.Key); record.State != StateDone || record.Status != 200 {
		t.Errorf("record: %+v", record)
	}
	if proxy.lost() != 2 {
		t.Error("no answer was lost")
	}
}

func TestAPausedServer(t *testing.T) {
	server := newServer(t)
	s := openStore(t, server.config())
	r := request(testKey(t))
	ctx := context.Background()
	if err := s.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, server).ClientPause(ctx, replyTimeout+300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err := s.Claim(ctx, r)
	if err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("claim: %v", err)
	}
	if took := time.Since(start); took > groupTimeout {
		t.Errorf("the claim took %v", took)
	}
	for err != nil {
		var c Claim
		c, err = s.Claim(ctx, r)
		if err == nil && (c.Verdict != Claimed || c.Record.Attempts != 1) {
			t.Errorf("the repeat: %v, %+v", c.Verdict, c.Record)
		}
	}
}

func TestALostScriptIsSentAgain(t *testing.T) {
	server := newServer(t)
	s := openStore(t, server.config())
	client := newClient(t, server)
	ctx := context.Background()
	for range 3 {
		if err := client.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		for range 20 {
			work.Go(func() {
				c, err := s.Claim(ctx, request(NewDeadID()))
				if err != nil || c.Verdict != Claimed || c.Record.Attempts != 1 {
					t.Errorf("claim: %v, %+v, %v", c.Verdict, c.Record, err)
				}
			})
		}
		work.Wait()
	}
}

func TestARestartedServer(t *testing.T) {
	server := newServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openStore(t, server.config())
	r := request(testKey(t))
	ctx := context.Background()
	if _, err := s.Claim(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	for range maxInFlight + 2 { // more than the pool needs to notice
		if c, err := s.Claim(ctx, r); err == nil {
			t.Fatalf("claim without a server: %+v", c)
		}
	}
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := s.Claim(ctx, r)
		if err == nil {
			if c.Verdict != Claimed || c.Record.Attempts != 1 {
				t.Errorf("claim: %v, %+v", c.Verdict, c.Record)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("five seconds after the restart: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestOneBadKeyFailsAlone(t *testing.T) {
	s := openStore(t, shared.config())
	client := newClient(t, shared)
	ctx := context.Background()
	foreign, good := testKey(t), testKey(t)
	if err := client.LPush(ctx, foreign, "x").Err(); err != nil {
		t.Fatal(err)
	}
	defer client.Del(ctx, foreign)
	group := make([]*call, 3)
	for i, key := range []string{foreign, good, foreign} {
		op := operation{word: wordClaim, key: key, token: NewToken(), lease: 1000, deadline: 1000, retention: 60_000}
		group[i] = &call{op: op}
	}
	s.backend.run(ctx, group)
	if err := group[0].err; err == nil || !strings.Contains(err.Error(), "DEDUP_PREFIX") {
		t.Errorf("the bad key: %v", err)
	}
	if group[1].err != nil || group[1].answer.letter != letterClaimed {
		t.Errorf("the good key: %q, %v", group[1].answer.letter, group[1].err)
	}
	if group[2].err == nil {
		t.Error("the second bad key: no error")
	}
}

func TestEveryWriteSetsTheExpiry(t *testing.T) {
	b := redisBench(t)
	client := newClient(t, shared)
	ctx := context.Background()
	expires := func(after string) {
		t.Helper()
		left, err := client.PTTL(ctx, b.key).Result()
		if err != nil || left <= keep-time.Minute || left > keep {
			t.Errorf("after %s the key lives %v, %v; want %v", after, left, err, keep)
		}
		// The next write has to set it anew.
		if err := client.Expire(ctx, b.key, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r := b.request(NewToken())
	b.claimAs(r, Claimed)
	expires("a fresh claim")
	c := b.claimAs(r, Claimed)
	expires("a repeated claim")
	renewal := &call{op: c.Lease.operation(wordRenew)}
	renewal.op.lease = lease.Milliseconds()
	b.store.backend.run(ctx, []*call{renewal})
	if renewal.err != nil || renewal.answer.letter != letterApplied {
		t.Fatalf("renew: %q, %v", renewal.answer.letter, renewal.err)
	}
	expires("a renewal")
	b.wait(c.Lease, 0, WaitFailed, Applied)
	expires("wait")
	b.release(b.claim(Claimed).Lease, Applied)
	expires("release")
	c = b.claim(Claimed)
	expires("a claim of a waiting record")
	b.travel(2 * deadline)
	c = b.claim(Claimed)
	expires("a takeover")
	id := NewDeadID()
	b.bury(c.Lease, id, false, Applied)
	expires("bury")
	r = b.request(NewToken())
	r.DeadID = id
	b.claimAs(r, Claimed)
	expires("opening a dead record")
	b.succeed(200)
	expires("succeed")
	b.succeed(200)
	expires("a repeated success") // so that replicas can be waited for
}

func TestCredentials(t *testing.T) {
	const password = `p@ss:w#rd/% "'` // any character, in REDIS_PASSWORD
	server := newServer(t)
	ctx := context.Background()
	if err := newClient(t, server).ConfigSet(ctx, "requirepass", password).Err(); err != nil {
		t.Fatal(err)
	}
	cfg := server.config()
	withPassword := func(user, password string) Config {
		with := cfg
		with.RedisUsername, with.RedisPassword = user, Secret(password)
		return with
	}
	admin := redis.NewClient(&redis.Options{Addr: server.address, Password: password, DisableIdentity: true})
	defer admin.Close()
	// What the remedy for NOPERM says is enough for one server.
	err := admin.ACLSetUser(ctx, "sidecar", "on", ">few", "resetkeys", "~rabbitonce:*", "-@all",
		"+evalsha", "+eval", "+get", "+set", "+del", "+time", "+ping").Err()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cfg  Config
		key  string
		want string // "": no error
	}{
		"verbatim":          {withPassword("", password), "k", ""},
		"wins over the URL": {withPassword("", password), "k", ""},
		"wrong":             {withPassword("", "wrong hunter2"), "k", "WRONGPASS"},
		"none":              {cfg, "k", "set REDIS_PASSWORD"},
		"few permissions":   {withPassword("sidecar", "few"), "rabbitonce:c:id", ""},
		"another prefix":    {withPassword("sidecar", "few"), "other:c:id", "NOPERM"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "wins over the URL" {
				test.cfg.RedisURL = Secret("redis://user:hunter2@" + server.address)
				test.cfg.RedisUsername = "default"
			}
			s := openStore(t, test.cfg)
			c, err := s.Claim(ctx, request(test.key))
			if test.want == "" {
				if err != nil || s.Ping(ctx) != nil {
					t.Fatalf("claim: %v, ping: %v", err, s.Ping(ctx))
				}
				if _, _, err := s.Inspect(ctx, test.key); err != nil {
					t.Error(err)
				}
				if c.Verdict == Claimed {
					if _, err := s.Release(ctx, c.Lease); err != nil {
						t.Error(err)
					}
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("claim: %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows the password", err)
			}
			if advice := s.Advise(ctx); len(advice) != 0 {
				t.Errorf("advice where the question is denied: %q", advice)
			}
		})
	}
}

func TestServersThatRefuseWrites(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a replica":     {[]string{"--replicaof", "127.0.0.1 1"}, "point REDIS_URL at the primary"},
		"out of memory": {[]string{"--maxmemory", "100kb", "--maxmemory-policy", "noeviction"}, "raise maxmemory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, newServer(t, test.args...).config())
			c, err := s.Claim(context.Background(), request(testKey(t)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("claim: %v, %v; want %q", c.Verdict, err, test.want)
			}
			if err := s.Probe(context.Background(), testKey(t)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("probe: %v; want %q", err, test.want)
			}
			if err := s.Ping(context.Background()); err != nil {
				t.Errorf("ping: %v", err) // which is why a ping is no probe
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	server := newServer(t)
	s := openStore(t, server.config())
	client := newClient(t, server)
	ctx := context.Background()
	for policy, want := range map[string]int{"noeviction": 0, "allkeys-lru": 1, "volatile-ttl": 1} {
		if err := client.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		got := s.Advise(ctx)
		if len(got) != want || want == 1 && !strings.Contains(got[0], policy) {
			t.Errorf("%s: %q", policy, got)
		}
	}
	memory := openStore(t, Config{Store: StoreMemory})
	if len(memory.Advise(ctx)) != 1 {
		t.Error("the memory store does not say what it is")
	}
}

func TestAUnixSocket(t *testing.T) {
	s := openStore(t, Config{Store: StoreRedis, RedisURL: Secret("unix://" + filepath.Join(shared.dir, "redis.sock"))})
	if c, err := s.Claim(context.Background(), request(testKey(t))); err != nil || c.Verdict != Claimed {
		t.Errorf("claim: %v, %v", c.Verdict, err)
	}
}

func TestRemedies(t *testing.T) {
	for text, want := range map[string]string{
		"LOADING Redis is loading the dataset in memory":               "starting",
		"failed to authenticate: WRONGPASS invalid username-password ": "REDIS_PASSWORD",
		"MOVED 1 127.0.0.1:1":                               "cluster",
		"dial tcp 127.0.0.1:1: connect: connection refused": "",
	} {
		got := remedy(text)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestMetricsExistFromTheStart(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := openStore(t, shared.config(), WithRegisterer(registry))
	want := map[string]float64{"rabbitonce_claim_seconds": 0, "rabbitonce_lease_lost_total": 0}
	for _, w := range words() {
		want["rabbitonce_store_operations_total "+string(w)+" ok"] = 0
		want["rabbitonce_store_operations_total "+string(w)+" error"] = 0
	}
	if diff := cmp.Diff(want, gather(t, registry)); diff != "" {
		t.Errorf("at the start (-want +got):\n%s", diff)
	}
	if _, err := s.Claim(context.Background(), request(testKey(t))); err != nil {
		t.Fatal(err)
	}
	want["rabbitonce_claim_seconds"] = 1
	want["rabbitonce_store_operations_total claim ok"] = 1
	if diff := cmp.Diff(want, gather(t, registry)); diff != "" {
		t.Errorf("after a claim (-want +got):\n%s", diff)
	}
}

// gather returns each series' count, by its name and label values.
func gather(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}
