package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	// The program under test is built by TestMain, out of sight of go test's cache: without this import a result from before a change to the program
	// would count as a result of today.
	_ "rabbitonce/proxy"
	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests of the process use: set by TestMain, read by stands.
var shared testkit.Servers

func TestMain(m *testing.M) {
	// Nearly all of a test's time is waiting for a lease, a deadline or an outage. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(shared.Around(m, testkit.ServersOptions{Race: withRace, After: lastLook}))
}

// lastLook is at what the tests left on the shared servers.
func lastLook() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mistakes, err := protocolMistakes(shared.Broker.LogPath)
	for _, m := range mistakes {
		err = errors.Join(err, fmt.Errorf("the broker's log: %s", m))
	}
	immortal, redisErr := immortalRecords(ctx, shared.Redis.URL)
	for _, key := range immortal {
		err = errors.Join(err, fmt.Errorf("a record that never expires: %s", key))
	}
	return errors.Join(err, redisErr)
}
