package dedup

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// shared is a Redis server for all tests that leave it as it is.
var shared *redisServer

func TestMain(m *testing.M) {
	if task := os.Getenv(holderVariable); task != "" {
		os.Exit(holder(task))
	}
	goleak.VerifyTestMain(withSharedRedis{m})
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
		if err := everyKeyExpires(context.Background(), server); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: after all tests:", err)
			code = 1
		}
	}
	if err := server.stop(); err != nil {
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
