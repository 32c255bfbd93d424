package cluster

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// brief is a POST's work. With four at once that is a hundred a second: what is under way at a fault matters, not how much went through
// before it.
func brief(testkit.Received) testkit.Action { return testkit.Action{Delay: 40 * time.Millisecond} }

// Catches: a session that takes a moved leader for lost messages, or does not go on with the new one.
func TestLeaderMoves(t *testing.T) {
	s := newStand(t, brief)
	for _, node := range s.nodes {
		s.moveLeader(node)
		s.progress()
	}
	s.allDone(nil)
}

// Catches: deliveries of the dead leader given up, or POSTed again when its successor hands them out a second time.
func TestLeaderIsKilled(t *testing.T) {
	s := newStand(t, brief)
	leader := s.others(s.consumersNode())[0] // elsewhere: the consumer's connection stays
	s.moveLeader(leader)
	s.must(leader.Kill())
	s.progress()
	s.must(leader.Start(s.ctx))
	s.allDone(nil)
}

// Catches: a reconnect to the dead node only, late acks of the lost session on the new one, a success that is not found again.
func TestNodeOfTheConsumerIsKilled(t *testing.T) {
	s := newStand(t, brief)
	node := s.consumersNode()
	s.moveLeader(node) // the leader goes with it
	s.must(node.Kill())
	s.progress()
	s.must(node.Start(s.ctx))
	s.allDone(nil)
}

// Catches: anything that piles up from one restart to the next: an upgrade restarts each node.
func TestEachNodeRestarts(t *testing.T) {
	s := newStand(t, brief)
	for _, node := range s.nodes {
		s.must(node.Restart(s.ctx))
		s.progress()
	}
	s.allDone(nil)
}
