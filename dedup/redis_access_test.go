package dedup

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// documentedUser is the line of docs/stores.md that makes a user who may do
// what is needed and nothing else, without its name.
func documentedUser(t *testing.T) []any {
	t.Helper()
	page, err := os.ReadFile("../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ACL SETUSER (.+)$`).FindSubmatch(page)
	if line == nil {
		t.Fatal("docs/stores.md has no ACL SETUSER line")
	}
	args := []any{"ACL", "SETUSER"}
	for word := range strings.FieldsSeq(string(line[1])) {
		args = append(args, word)
	}
	return args
}

func TestTheDocumentedUserMayDoEnough(t *testing.T) {
	ctx := context.Background()
	user := documentedUser(t)
	tr := newTrio(t)
	c := newCluster(t, 0)
	servers := append(c.nodes(), newServer(t), tr.primary)
	for _, server := range servers {
		client := newClient(t, server)
		if err := client.Do(ctx, user...).Err(); err != nil {
			t.Fatal(err)
		}
		// Without a name one may be a replica, and nothing else.
		if err := client.Do(ctx, "ACL", "SETUSER", "default", "-@all", "+psync", "+replconf", "+ping").Err(); err != nil {
			t.Fatal(err)
		}
	}
	single := servers[3].config()
	waiting := tr.config()
	waiting.WaitReplicas = 1
	for name, cfg := range map[string]Config{"one server": single, "sentinel": waiting, "cluster": c.config()} {
		t.Run(name, func(t *testing.T) {
			cfg.RedisUsername, cfg.RedisPassword = "rabbitonce", "secret"
			s := openStore(t, cfg)
			r := request("rabbitonce:c:" + NewDeadID())
			claim := eventually(t, s, r, Claimed)
			if err := s.Ping(ctx); err != nil {
				t.Error(err)
			}
			if _, _, err := s.Inspect(ctx, r.Key); err != nil {
				t.Error(err)
			}
			if _, err := s.Wait(ctx, claim.Lease, 0, WaitFailed); err != nil {
				t.Error(err)
			}
			id := NewDeadID()
			if _, err := s.Bury(ctx, eventually(t, s, r, Claimed).Lease, ReasonRejected, id, false); err != nil {
				t.Error(err)
			}
			if err := s.Undead(ctx, r.Key, id); err != nil {
				t.Error(err)
			}
			if _, err := s.Release(ctx, eventually(t, s, r, Claimed).Lease); err != nil {
				t.Error(err)
			}
			if err := s.Succeed(ctx, r.Key, 200, payload, keep); err != nil {
				t.Error(err)
			}
			r.Key = "another:c:id"
			_, err := s.Claim(ctx, r)
			wantError(t, "another prefix", err, "NOPERM")
		})
	}
}

// TestCredentialsThatChange replaces the password of a running server.
func TestCredentialsThatChange(t *testing.T) {
	server := newServer(t, "--requirepass", "first")
	ctx := context.Background()
	cfg := server.config()
	password, problem := "first", error(nil)
	cfg.Credentials = func(context.Context) (string, string, error) { return "", password, problem }
	cfg.RedisPassword = "something else"
	s := openStore(t, cfg)
	r := request(testKey(t))
	claim := func() error {
		c, err := s.Claim(ctx, r)
		if err == nil && c.Verdict != Claimed {
			t.Errorf("claim: %v", c.Verdict)
		}
		return err
	}
	if err := claim(); err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(&redis.Options{Addr: server.address, Password: "first", DisableIdentity: true})
	defer admin.Close()
	if err := admin.ConfigSet(ctx, "requirepass", "second").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	wantError(t, "with the old password", claim(), "WRONGPASS")
	password, problem = "second", errors.New("the vault is sealed")
	wantError(t, "without any", claim(), "the vault is sealed")
	problem = nil
	if err := claim(); err != nil {
		t.Errorf("with the new password: %v", err)
	}
}

func TestSentinelsThatWantAPassword(t *testing.T) {
	tr := newTrio(t)
	ctx := context.Background()
	cfg := tr.config()
	for _, sentinel := range tr.sentinels {
		if err := newClient(t, sentinel).Do(ctx, "ACL", "SETUSER", "default", "resetpass", ">of sentinels").Err(); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, cfg)
	_, err := s.Claim(ctx, request(testKey(t)))
	wantError(t, "without a password", err, "REDIS_SENTINEL_PASSWORD")
	cfg.RedisSentinelPassword = "of sentinels"
	eventually(t, openStore(t, cfg), request(testKey(t)), Claimed)
}
