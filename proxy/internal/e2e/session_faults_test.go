package e2e

import (
	"fmt"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// TestSessionFaults runs on a broker of its own what would disturb the other tests, or what needs a short heartbeat, users and vhosts.
func TestSessionFaults(t *testing.T) {
	t.Parallel()
	broker := ownBroker(t, testkit.BrokerOptions{
		Config: []string{fmt.Sprintf("heartbeat = %d", shortHeartbeat/time.Second), "load_definitions = " + writeDefinitions(t)},
	})
	t.Cleanup(func() {
		mistakes, err := protocolMistakes(broker.LogPath)
		if err != nil {
			t.Error(err)
		}
		for _, m := range mistakes {
			t.Errorf("the broker's log: %s", m)
		}
	})
	// These change the whole broker.
	t.Run("disk alarm", func(t *testing.T) { diskAlarm(t, broker) })
	t.Run("acknowledgement timeout", func(t *testing.T) { acknowledgementTimeout(t, broker) })
	for _, fault := range []struct {
		name string
		test func(*testing.T, *testkit.Broker)
	}{
		{"closed by an operator", closedByAnOperator}, // the longest first
		{"vhost missing, then created", vhostCreated},
		{"login refused, then corrected", loginCorrected},
		{"network", networkFaults},
		{"stopped past the heartbeat", stoppedPastTheHeartbeat},
		{"too many connections", tooManyConnections},
		{"odd vhosts", oddVhostNames},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fault.test(t, broker)
		})
	}
}
