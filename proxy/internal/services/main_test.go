package services

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	// The program under test is built by TestMain, out of sight of go test's cache.
	_ "rabbitonce/proxy"
	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests of the process use: set by TestMain.
var shared testkit.Servers

func TestMain(m *testing.M) {
	// Nearly all of a test's time is waiting for idle connections and deadlines. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(shared.Around(m, testkit.ServersOptions{Race: withRace}))
}
