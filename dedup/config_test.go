package dedup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

func load[T any](t *testing.T, env map[string]string) T {
	t.Helper()
	var cfg T
	err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &cfg, Lookuper: envconfig.MapLookuper(env)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestConfigDefaults(t *testing.T) {
	if diff := cmp.Diff(Config{Store: StoreRedis, OnStoreDown: StoreDownWait}, load[Config](t, nil)); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	cfg := load[QueueConfig](t, nil)
	if problems := cfg.Validate(); len(problems) > 0 {
		t.Errorf("the defaults have problems: %v", problems)
	}
	if got := cfg.IDFrom.String(); got != "message-id,header:x-message-id" {
		t.Errorf("DEDUP_ID_FROM: %q", got)
	}
	if cfg.Prefix != "rabbitonce" || cfg.OnMissingID != MissingDeadletter || cfg.OnConflict != ConflictDeadletter ||
		cfg.Lease != 30*time.Second || cfg.Retention != 48*time.Hour {
		t.Errorf("defaults: %+v", cfg)
	}
}

func TestConfigValidate(t *testing.T) {
	const secret = "s3cr#t"
	tests := []struct{ url, want string }{
		{"redis://host", ""},
		{"redis://host:6379/3", ""},
		{"rediss://user:pass%23word@host:6380/0", ""},
		{"unix:///run/redis.sock", ""},
		{"redis://[::1]:6379", ""},
		{"", "REDIS_URL: is required unless DEDUP_STORE=memory"},
		{"host:6379", "REDIS_URL: "},
		{"amqp://host", "REDIS_URL: has no scheme"},
		{"redis://", "REDIS_URL: names no host"},
		{"unix://", "REDIS_URL: names no socket"},
		{"redis://a:1,b:2", "REDIS_URL: names several hosts; set REDIS_CLUSTER=true"},
		{"redis://a:1,", "REDIS_URL: names a host that is none"},
		{"redis://a:1,b:port", "REDIS_URL: names a host that is none"},
		{"redis://a:1,b:2/0,c:3", "REDIS_URL: "},
		{"redis://host/zero", "REDIS_URL: has a database"},
		{"redis://host/0?no_such_option=1", "REDIS_URL: has a database or an option"},
		{"redis://:" + secret + "@host", "REDIS_URL: "},
		{"redis://:" + secret + "%zz@host", "REDIS_URL: is not a URL"},
		{"redis://:" + secret + " \n@host", "REDIS_URL: is not a URL"},
	}
	for _, test := range tests {
		cfg := Config{Store: StoreRedis, RedisURL: Secret(test.url)}
		text := fmt.Sprint(cfg.Validate())
		if test.want == "" && text != "[]" || !strings.Contains(text, test.want) {
			t.Errorf("%q: got %s, want %q in it", test.url, text, test.want)
		}
		if strings.Contains(text, "s3cr") {
			t.Errorf("%q: %s shows the secret", test.url, text)
		}
	}
	memory := Config{Store: StoreMemory, RedisURL: "nonsense"}
	if problems := memory.Validate(); len(problems) > 0 {
		t.Errorf("memory needs no URL: %v", problems)
	}
	other := Config{Store: "etcd"}
	if text := fmt.Sprint(other.Validate()); !strings.Contains(text, "DEDUP_STORE: ") {
		t.Errorf("DEDUP_STORE=etcd: %s", text)
	}
}

func TestKindsOfRedis(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  Config
		want string // "": no problem
	}{
		"a cluster":                     {Config{RedisCluster: true, RedisURL: "rediss://user:p,w@a:1,b,[::1]:3/0"}, ""},
		"a cluster by one node":         {Config{RedisCluster: true, RedisURL: "redis://a"}, ""},
		"a cluster's database":          {Config{RedisCluster: true, RedisURL: "redis://a,b/1"}, "REDIS_URL: names a database"},
		"a cluster's database, asked":   {Config{RedisCluster: true, RedisURL: "redis://a,b?db=1"}, "REDIS_URL: names a database"},
		"a cluster behind a socket":     {Config{RedisCluster: true, RedisURL: "unix:///a.sock"}, "REDIS_URL: is a socket"},
		"sentinels":                     {Config{RedisSentinelMaster: "m", RedisURL: "redis://a:1,b:2/3", RedisSentinelPassword: "x"}, ""},
		"both":                          {Config{RedisSentinelMaster: "m", RedisCluster: true, RedisURL: "redis://a"}, "REDIS_CLUSTER: excludes"},
		"a sentinel's password alone":   {Config{RedisSentinelPassword: "x", RedisURL: "redis://a"}, "REDIS_SENTINEL_PASSWORD: "},
		"a certificate, and plain text": {Config{RedisTLSServerName: "x", RedisURL: "redis://a"}, "write rediss://"},
		"too many replicas":             {Config{WaitReplicas: 101, RedisURL: "redis://a"}, "DEDUP_WAIT_REPLICAS: 101 is not between 0 and 100"},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Store = StoreRedis
			text := fmt.Sprint(test.cfg.Validate())
			if test.want == "" && text != "[]" || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %q", text, test.want)
			}
		})
	}
}

func TestHostsOfAURL(t *testing.T) {
	for url, want := range map[string][]string{
		"redis://one":                              {"one:6379"},
		"redis://user:p,%40w@one:1,two/0?db=0":     {"one:1", "two:6379"},
		"rediss://[::1],[::2]:7":                   {"[::1]:6379", "[::2]:7"},
		"unix:///run/redis,cache.sock":             {"/run/redis,cache.sock"},
		"redis://user:p,w@one?read_timeout=1s,two": nil,
	} {
		options, err := redisOptions(Config{RedisURL: Secret(url)})
		if want == nil {
			if err == nil {
				t.Errorf("%s: %q", url, options.Addrs)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if diff := cmp.Diff(want, options.Addrs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
	options, err := redisOptions(Config{RedisURL: "redis://one,two:1", RedisSentinelMaster: "main"})
	if err != nil || options.Addrs[0] != "one:26379" || options.Addrs[1] != "two:1" {
		t.Errorf("sentinels: %q, %v", options.Addrs, err)
	}
}

func TestQueueConfigReportsEverything(t *testing.T) {
	cfg := load[QueueConfig](t, map[string]string{
		"DEDUP_ID_FROM": "nonsense,header:", "DEDUP_ON_MISSING_ID": "drop", "DEDUP_ON_CONFLICT": "ignore",
		"DEDUP_LEASE": "900ms", "DEDUP_RETENTION": "500ms",
	})
	cfg.Prefix = ""
	var got []string
	for _, problem := range cfg.Validate() {
		name, _, _ := strings.Cut(problem.Error(), ":")
		got = append(got, name)
	}
	want := []string{
		"DEDUP_PREFIX", "DEDUP_ID_FROM", "DEDUP_ID_FROM", "DEDUP_ON_MISSING_ID", "DEDUP_ON_CONFLICT", "DEDUP_LEASE", "DEDUP_RETENTION",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables with problems (-want +got):\n%s", diff)
	}
	cfg = load[QueueConfig](t, map[string]string{"DEDUP_RETENTION": "999999h"})
	if len(cfg.Validate()) != 1 {
		t.Errorf("a retention of a century: %v", cfg.Validate())
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	cfg := Config{Store: StoreRedis, RedisURL: "redis://:hunter2@host", RedisPassword: "hunter2"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "config", cfg, "password", cfg.RedisPassword)
	encoded, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), fmt.Sprintf("%q", cfg.RedisPassword),
		log.String(), string(encoded),
	} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "***") {
			t.Errorf("shows the secret, or hides that there is one: %s", text)
		}
	}
	if cfg.RedisPassword.Reveal() != "hunter2" || Secret("").String() != "" {
		t.Error("a secret reveals itself, and an empty one is empty")
	}
}

func TestClosedEnums(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		parsed, ok := ParseReason(r.String())
		if !ok || parsed != r || seen[r.String()] {
			t.Errorf("reason %d: %q parses as %v, %v", r, r, parsed, ok)
		}
		seen[r.String()] = true
	}
	if _, ok := ParseReason("reason-9"); ok {
		t.Error("reason-9 is a reason")
	}
	for got, want := range map[fmt.Stringer]string{
		Claimed: "claimed", Done: "done", Busy: "busy", Waiting: "waiting", Dead: "dead", Conflict: "conflict",
		Applied: "applied", FoundDone: "found-done", NotOurs: "not-ours",
		StateProcessing: "processing", StateWaiting: "waiting", StateDone: "done", StateDead: "dead",
		WaitFailed: "failed", WaitDeferred: "deferred", WaitUnknown: "unknown",
		Reason(9): "reason-9", Verdict(9): "verdict-9", Settlement(9): "settlement-9", State(9): "state-9", WaitClass(9): "class-9",
	} {
		if got.String() != want {
			t.Errorf("%T: got %q, want %q", got, got, want)
		}
	}
}

func TestTokensAndDeadIDsAreUnique(t *testing.T) {
	tokens, ids := map[Token]bool{}, map[string]bool{}
	for range 1000 {
		tokens[NewToken()], ids[NewDeadID()] = true, true
	}
	if len(tokens) != 1000 || len(ids) != 1000 {
		t.Errorf("%d tokens, %d dead-ids of 1000", len(tokens), len(ids))
	}
}
