package dedup

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
