package faults

import (
	"testing"

	"go.uber.org/goleak"

	// The program under test is built by TestMain, out of sight of go test's cache.
	_ "rabbitonce/proxy"
	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests of the process use: set by TestMain.
var shared testkit.Servers

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(shared.Around(m, testkit.ServersOptions{
		Race: true, Broker: testkit.BrokerOptions{Args: brokerArgs}, Redis: testkit.RedisOptions{Args: storeArgs},
	}))
}
