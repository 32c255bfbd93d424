package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rabbitonce/proxy/internal/testkit"
)

// TestDemo runs the whole demo on given servers, in less time than a person gets, and looks at what it leaves there.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	broker, err := testkit.StartBroker(ctx, testkit.BrokerOptions{})
	must(t, err)
	defer func() { must(t, broker.Close()) }()
	store, err := testkit.StartRedis(ctx, testkit.RedisOptions{})
	must(t, err)
	defer func() { must(t, store.Close()) }()

	var out bytes.Buffer
	result, err := run(ctx, options{
		brokerURL: broker.URL, redisURL: store.URL, out: &out,
		pace: 5 * time.Millisecond, serviceDown: time.Second, brokerGone: 500 * time.Millisecond,
	})
	t.Logf("output:\n%s", out.String())
	must(t, err)
	if code := exitCode(result, err); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`(?m)^10 orders +plain: 10 charged +\| rabbitonce: 10 charged$`,
		`(?m)^order-11 published again.* plain: CHARGED TWICE +\| rabbitonce: skipped$`,
		`(?m)^order-12 is poison.* plain: LOST +\| rabbitonce: dead letter$`,
		`(?m)^publisher restarts.* plain: 3 CHARGED TWICE +\| rabbitonce: 3 skipped$`,
		`(?m)^service crashes.* plain: 6 charged +\| rabbitonce: 6 charged$`,
		`(?m)^order-19 charged, broker gone.* plain: CHARGED TWICE +\| rabbitonce: skipped$`,
		`(?m)^order-23 charged, kill -9.* plain: CHARGED TWICE +\| rabbitonce: needs a person$`,
		`(?m)^published +40 +40$`,
		`(?m)^distinct orders +36 +36$`,
		`(?m)^charges +41 +35$`,
		`(?m)^charged twice +6 +0$`,
		`(?m)^lost +1 +0$`,
		`(?m)^dead letters +0 +2$`,
		`(?m)^  rejected +0 +1$`,
		`(?m)^  unknown-outcome +0 +1$`,
		`(?m)^needs a person +0 +1$`,
		`(?m)^needs a person: order-23: .* 1 charge\(s\)`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line of the output matches %s", want)
		}
	}
	leavesNothing(t, ctx, broker, store)
}

// leavesNothing fails the test when the demo has left something on the servers.
func leavesNothing(t *testing.T, ctx context.Context, broker *testkit.Broker, store *testkit.Redis) {
	t.Helper()
	for _, kind := range []string{"queues", "exchanges"} {
		names, err := broker.Ctl(ctx, "list_"+kind, "--no-table-headers", "name")
		must(t, err)
		if strings.Contains(names, "rabbitonce-demo") {
			t.Errorf("%s left on the broker:\n%s", kind, names)
		}
	}
	must(t, withRedis(store.URL, func(client *redis.Client) error {
		keys, err := client.Keys(ctx, "*").Result()
		if len(keys) > 0 {
			t.Errorf("records left in Redis: %q", keys)
		}
		return err
	}))
}

func TestUnreachableBrokerIsSaid(t *testing.T) {
	var out bytes.Buffer
	_, err := run(t.Context(), options{brokerURL: "amqp://user:secret@127.0.0.1:1/", redisURL: "redis://127.0.0.1:1/0", out: &out})
	if err == nil || !strings.Contains(err.Error(), "RABBITMQ_URL: ") || !strings.Contains(err.Error(), "REDIS_URL: ") {
		t.Errorf("err = %v", err)
	}
	if text := out.String() + err.Error(); strings.Contains(text, "secret") {
		t.Errorf("a secret is shown:\n%s", text)
	}
}

func TestUsage(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(t, err)
	defer null.Close()
	if code := command([]string{"--help"}, null); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
}
