package dedup

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func examined(t *testing.T, cfg Config) []Server {
	t.Helper()
	servers, err := openStore(t, cfg).Examine(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		if s.RoundTrip <= 0 || s.RoundTrip > 5*time.Second || s.Ahead.Abs() > time.Second {
			t.Errorf("%s: round trip %v, clock ahead by %v", s.Address, s.RoundTrip, s.Ahead)
		}
	}
	return servers
}

// product is the name of this run's server.
func product() string {
	if strings.HasPrefix(os.Getenv("RABBITONCE_TEST_STORE"), "valkey") {
		return "Valkey"
	}
	return "Redis"
}

func TestExamine(t *testing.T) {
	times := cmpopts.IgnoreFields(Server{}, "RoundTrip", "Ahead", "UsedMemory", "Version")
	for name, c := range map[string]struct {
		args []string
		want Server
	}{
		"careless": {
			[]string{"--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"},
			Server{Told: true, Product: product(), Role: "master", Eviction: "allkeys-lru", MaxMemory: 50 << 20},
		},
		"careful": {
			[]string{"--appendonly", "yes"},
			Server{Told: true, Product: product(), Role: "master", Eviction: "noeviction", AppendOnly: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t, c.args...)
			c.want.Address = server.address
			got := examined(t, server.config())
			if diff := cmp.Diff([]Server{c.want}, got, times); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got[0].UsedMemory == 0 || !strings.Contains(got[0].Version, ".") {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

func TestExamineEveryKind(t *testing.T) {
	if n := len(examined(t, sharedCluster.get(t).config())); n != 3 {
		t.Errorf("%d servers of a cluster of 3 primaries", n)
	}
	trio := examined(t, sharedTrio.get(t).config())
	if len(trio) != 1 || trio[0].Replicas != 1 || trio[0].Role != "master" {
		t.Errorf("by way of sentinels: %+v", trio)
	}
	if servers := examined(t, Config{Store: StoreMemory}); len(servers) != 0 {
		t.Errorf("in memory: %+v", servers)
	}
}

func TestExamineWithFewPermissions(t *testing.T) {
	ctx := context.Background()
	server := newServer(t)
	if err := newClient(t, server).Do(ctx, documentedUser(t)...).Err(); err != nil {
		t.Fatal(err)
	}
	cfg := server.config()
	cfg.RedisUsername, cfg.RedisPassword = "rabbitonce", "secret"
	if got := examined(t, cfg)[0]; got.Told || got.Version != "" {
		t.Errorf("without +info: %+v", got)
	}
}

func TestExamineNobody(t *testing.T) {
	_, err := openStore(t, Config{Store: StoreRedis, RedisURL: "redis://127.0.0.1:1"}).Examine(context.Background())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func TestServerReadsValkey(t *testing.T) {
	var got Server
	got.read("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n# Replication\r\nrole:slave\r\nconnected_slaves:2\r\n" +
		"used_memory:12\r\nmaxmemory:34\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\naof_last_write_status:err\r\n")
	want := Server{
		Told: true, Product: "Valkey", Version: "8.1.1", Role: "slave", Replicas: 2, Eviction: "noeviction",
		UsedMemory: 12, MaxMemory: 34, AppendOnly: true, SavingFailed: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
