package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	// The program under test is built by TestMain, out of sight of go test's cache: without this import a result from before a change to the program
	// would count as a result of today.
	_ "rabbitonce/proxy"
	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests of the process use: set by TestMain, read by stands.
var shared struct {
	binary *testkit.Binary
	broker *testkit.Broker
	redis  *testkit.Redis
}

func TestMain(m *testing.M) {
	// Nearly all of a test's time is waiting for a lease, a deadline or an outage. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	err := startShared(ctx)
	if err == nil {
		err = printServers()
	}
	if err == nil {
		code = m.Run()
		err = lastLook()
	}
	if err := errors.Join(err, closeShared(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// startShared builds the program while the broker starts.
func startShared(ctx context.Context) error {
	var builder sync.WaitGroup
	var binaryErr, brokerErr, redisErr error
	builder.Go(func() { shared.binary, binaryErr = testkit.Build(ctx, withRace) })
	shared.broker, brokerErr = testkit.StartBroker(ctx, testkit.BrokerOptions{})
	shared.redis, redisErr = testkit.StartRedis(ctx, testkit.RedisOptions{})
	builder.Wait()
	return errors.Join(binaryErr, brokerErr, redisErr)
}

// printServers says what the tests run with: make matrix reads it.
func printServers() error {
	text, err := testkit.Describe(shared.broker, shared.redis)
	if err == nil {
		fmt.Println("servers: " + text)
	}
	return err
}

// lastLook is at what the tests left on the shared servers.
func lastLook() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mistakes, err := protocolMistakes(shared.broker.LogPath)
	for _, m := range mistakes {
		err = errors.Join(err, fmt.Errorf("the broker's log: %s", m))
	}
	immortal, redisErr := immortalRecords(ctx, shared.redis.URL)
	for _, key := range immortal {
		err = errors.Join(err, fmt.Errorf("a record that never expires: %s", key))
	}
	return errors.Join(err, redisErr)
}

func closeShared() error {
	var err error
	if shared.broker != nil {
		err = errors.Join(err, shared.broker.Close())
	}
	if shared.redis != nil {
		err = errors.Join(err, shared.redis.Close())
	}
	if shared.binary != nil {
		err = errors.Join(err, shared.binary.Remove())
	}
	return err
}
