package dedup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// trio is a primary, its replica, and three sentinels that watch them.
type trio struct {
	primary, replica *redisServer
	sentinels        []*redisServer
}

// sentinelName is what the sentinels call the primary.
const sentinelName = "main"

// startTrio returns when the sentinels know all of the others.
func startTrio(parent string, args ...string) (*trio, error) {
	primary, err := startRedis(parent, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
	if err != nil {
		return nil, err
	}
	tr := &trio{primary: primary}
	tr.replica, err = startRedis(parent, append([]string{"--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 " + primary.port()}, args...)...)
	if err != nil {
		return nil, errors.Join(err, tr.stop())
	}
	for range 3 {
		sentinel, err := startSentinel(parent, primary)
		if err != nil {
			return nil, errors.Join(err, tr.stop())
		}
		tr.sentinels = append(tr.sentinels, sentinel)
	}
	if err := within(20*time.Second, tr.complete); err != nil {
		return nil, errors.Join(err, tr.stop())
	}
	return tr, nil
}

func startSentinel(parent string, primary *redisServer) (*redisServer, error) {
	dir, err := os.MkdirTemp(parent, "sentinel")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf")
	text := strings.Join([]string{
		"port " + port, "bind 127.0.0.1", "dir " + dir,
		"sentinel monitor " + sentinelName + " 127.0.0.1 " + primary.port() + " 2",
		"sentinel down-after-milliseconds " + sentinelName + " 500",
		"sentinel failover-timeout " + sentinelName + " 2000",
	}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &redisServer{address: net.JoinHostPort("127.0.0.1", port), dir: dir, args: []string{file, "--sentinel"}}
	return s, s.start()
}

// complete tells whether the replica is in step and every sentinel knows all.
func (tr *trio) complete() error {
	ctx := context.Background()
	client := tr.primary.client()
	defer client.Close()
	if n, err := client.Wait(ctx, 1, time.Second).Result(); n != 1 || err != nil {
		return fmt.Errorf("replicas: %d, %v", n, err)
	}
	for _, s := range tr.sentinels {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.address, DisableIdentity: true})
		state, err := sentinel.Master(ctx, sentinelName).Result()
		_ = sentinel.Close()
		if err != nil || state["num-slaves"] != "1" || state["num-other-sentinels"] != "2" || state["flags"] != "master" {
			return fmt.Errorf("sentinel: %v, %v", state, err)
		}
	}
	return nil
}

func (tr *trio) stop() error {
	var problems []error
	for _, s := range append(tr.sentinels, tr.primary, tr.replica) {
		if s != nil {
			problems = append(problems, s.stop())
		}
	}
	return errors.Join(problems...)
}

func (tr *trio) config() Config {
	hosts := make([]string, len(tr.sentinels))
	for i, s := range tr.sentinels {
		hosts[i] = s.address
	}
	return Config{
		Store: StoreRedis, RedisURL: Secret("redis://" + strings.Join(hosts, ",")),
		RedisSentinelMaster: sentinelName,
	}
}

// newTrio starts a trio for one test.
func newTrio(t *testing.T, args ...string) *trio {
	t.Helper()
	tr, err := startTrio(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.stop(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// within asks until there is no error, for so long at most.
func within(limit time.Duration, ask func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
		<-time.After(20 * time.Millisecond) // nothing tells when to ask
	}
}
