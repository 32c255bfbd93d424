package e2e

import (
	"errors"
	"net/http"
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a message acknowledged for a copy in a queue that was declared just before. A broker of version 3.10 that is killed within a second of the declaration comes back without a leader for the
// queue, and never hands the copy out, although it had confirmed it.
func TestKilledBrokerKeepsWhatIsInNewQueues(t *testing.T) {
	t.Parallel()
	broker := ownBroker(t, testkit.BrokerOptions{})
	s := newStandOn(t, broker, shared.Redis, func(r testkit.Received) testkit.Action {
		switch {
		case r.Key == "bad":
			return testkit.Action{Status: http.StatusBadRequest}
		case r.Number == 1:
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	s.must(s.client.Delete(s.dead))
	r := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s"})
	s.publish("bad", "later")
	r.waitLog("settled", "id", "bad", "fate", "dead_letter")
	r.waitLog("settled", "id", "later", "fate", "parked")
	s.must(errors.Join(broker.Kill(), broker.Start(s.ctx)))
	s.dial()
	s.letter("bad", "rejected")
	s.answered("later")
}
