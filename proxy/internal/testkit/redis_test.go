package testkit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func openRedis(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	must(t, err)
	options.MaxRetries, options.DialerRetries, options.DisableIdentity = -1, 1, true
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	closing(t, client)
	return client
}

func TestRedisKeepsDataOverKill(t *testing.T) {
	ctx := within(t, time.Minute)
	server, err := StartRedis(ctx, RedisOptions{})
	must(t, err)
	closing(t, server)
	client := openRedis(t, server.URL)
	must(t, client.Set(ctx, "a", "1", 0).Err())

	must(t, server.Kill())
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("a killed server answers")
	}
	must(t, server.Start(ctx))
	if value, err := client.Get(ctx, "a").Result(); err != nil || value != "1" {
		t.Errorf("after kill and start: %q, %v", value, err)
	}

	must(t, server.Pause())
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := openRedis(t, server.URL).Ping(short).Err(); err == nil {
		t.Error("a paused server answers")
	}
	must(t, server.Resume())
	must(t, client.Ping(ctx).Err())

	must(t, server.Stop(ctx))
	must(t, server.Start(ctx))
	if err := server.Start(ctx); err == nil {
		t.Error("starting a running server: no error")
	}
	group := server.process.group
	must(t, server.Close())
	if left := groupMembers(group); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRedisThatCannotStartShowsItsLog(t *testing.T) {
	_, err := StartRedis(within(t, time.Minute), RedisOptions{Args: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("err = %v, want the server's complaint", err)
	}
}
