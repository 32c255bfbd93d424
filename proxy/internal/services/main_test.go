package services

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

	// The program under test is built by TestMain, out of sight of go test's cache.
	_ "rabbitonce/proxy"
	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests of the process use: set by TestMain.
var shared struct {
	binary *testkit.Binary
	broker *testkit.Broker
	redis  *testkit.Redis
}

func TestMain(m *testing.M) {
	// Nearly all of a test's time is waiting for idle connections and deadlines. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	err := startShared(ctx)
	if err == nil {
		code = m.Run()
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
