package dedup

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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

func TestAUnixSocket(t *testing.T) {
	s := openStore(t, Config{Store: StoreRedis, RedisURL: Secret("unix://" + filepath.Join(shared.dir, "redis.sock"))})
	if c, err := s.Claim(context.Background(), request(testKey(t))); err != nil || c.Verdict != Claimed {
		t.Errorf("claim: %v, %v", c.Verdict, err)
	}
}
