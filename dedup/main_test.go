package dedup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// shared is a Redis server for all tests that leave it as it is. The cluster
// and the trio are started by the first test that asks for one.
var (
	shared        *redisServer
	sharedCluster = lazy[*redisCluster]{start: func() (*redisCluster, error) { return startCluster(os.TempDir(), 0) }}
	sharedTrio    = lazy[*trio]{start: func() (*trio, error) { return startTrio(os.TempDir()) }}
)

// lazy is what only some tests need. Tests do not ask in parallel.
type lazy[T interface{ stop() error }] struct {
	start   func() (T, error)
	value   T
	started bool
}

func (l *lazy[T]) get(t *testing.T) T {
	t.Helper()
	if !l.started {
		var err error
		if l.value, err = l.start(); err != nil {
			t.Fatal(err)
		}
		l.started = true
	}
	return l.value
}

func (l *lazy[T]) servers(of func(T) []*redisServer) []*redisServer {
	if !l.started {
		return nil
	}
	return of(l.value)
}

func (l *lazy[T]) stop() error {
	if !l.started {
		return nil
	}
	return l.value.stop()
}

func TestMain(m *testing.M) {
	if task := os.Getenv(holderVariable); task != "" {
		os.Exit(holder(task))
	}
	const library = "github.com/redis/go-redis/v9"
	goleak.VerifyTestMain(
		withSharedRedis{m},
		// Two goroutines of the library end by themselves after its client is
		// closed, but sleep for up to a second first.
		goleak.IgnoreAnyFunction(library+"/internal/pool.(*ConnPool).tryDial"),
		goleak.IgnoreAnyFunction(library+".(*clusterStateHolder).LazyReload.func1"),
	)
}

// withSharedRedis runs the tests beside a server, and afterwards holds the
// store to its promise that no key lives for ever.
type withSharedRedis struct{ tests *testing.M }

func (w withSharedRedis) Run() int {
	server, err := startRedis(os.TempDir())
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests need redis-server:", err)
		return 1
	}
	shared = server
	code := w.tests.Run()
	if code == 0 {
		servers := append(sharedCluster.servers((*redisCluster).nodes), server)
		servers = append(servers, sharedTrio.servers(func(tr *trio) []*redisServer { return []*redisServer{tr.primary} })...)
		for _, s := range servers {
			if err := everyKeyExpires(context.Background(), s); err != nil {
				fmt.Fprintln(os.Stderr, "FAIL: after all tests:", err)
				code = 1
			}
		}
	}
	if err := errors.Join(server.stop(), sharedCluster.stop(), sharedTrio.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "stop redis-server:", err)
		code = 1
	}
	return code
}

func everyKeyExpires(ctx context.Context, server *redisServer) error {
	client := server.client()
	defer client.Close()
	keys := client.Scan(ctx, 0, "", 1000).Iterator()
	for keys.Next(ctx) {
		left, err := client.TTL(ctx, keys.Val()).Result()
		if err != nil {
			return err
		}
		if left == -1 { // go-redis passes Redis's "no expiry" on as it is
			return fmt.Errorf("key %q has no expiry", keys.Val())
		}
	}
	return keys.Err()
}
