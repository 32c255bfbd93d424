package cluster

import (
	"context"
	"errors"
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
	binary  *testkit.Binary
	cluster *testkit.BrokerCluster
	redis   *testkit.Redis
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

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

// startShared builds the program while the cluster forms.
func startShared(ctx context.Context) error {
	var builder sync.WaitGroup
	var binaryErr, clusterErr, redisErr error
	builder.Go(func() { shared.binary, binaryErr = testkit.Build(ctx, withRace) })
	shared.redis, redisErr = testkit.StartRedis(ctx, testkit.RedisOptions{})
	shared.cluster, clusterErr = testkit.StartBrokerCluster(ctx, 3, testkit.BrokerOptions{})
	builder.Wait()
	return errors.Join(binaryErr, clusterErr, redisErr)
}

func closeShared() error {
	var err error
	if shared.cluster != nil {
		err = errors.Join(err, shared.cluster.Close())
	}
	if shared.redis != nil {
		err = errors.Join(err, shared.redis.Close())
	}
	if shared.binary != nil {
		err = errors.Join(err, shared.binary.Remove())
	}
	return err
}
