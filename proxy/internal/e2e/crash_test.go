package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// crashTimeout is FORWARD_TIMEOUT of the replicas that are killed: it decides how long a takeover waits. It is well above DEDUP_LEASE, so that a
// takeover at the end of the lease is told from one after the request deadline.
const crashTimeout = 4 * time.Second

// crashEnv shortens what a takeover waits for.
func crashEnv() env { return env{"FORWARD_TIMEOUT": crashTimeout.String(), "DEDUP_LEASE": "2s"} }

// crashPoint is a moment in the life of a delivery at which the replica is killed.
type crashPoint struct {
	name    string
	posted  bool // the service had the POST
	known   bool // the success was on record
	killAt  func(s *stand, r *replica, b *testkit.Barrier)
	barrier func(s *stand, l legs) *testkit.Barrier // nil: the service holds
}

func crashPoints() []crashPoint {
	atBarrier := func(_ *stand, r *replica, b *testkit.Barrier) { r.killAt(b) }
	return []crashPoint{
		{
			name: "after the claim, before the POST", killAt: atBarrier,
			barrier: func(s *stand, l legs) *testkit.Barrier {
				return l.store.Barrier(testkit.ToClient, s.onRecord("claim", "a"))
			},
		},
		{
			name: "during the POST", posted: true,
			barrier: func(*stand, legs) *testkit.Barrier { return nil },
			killAt: func(s *stand, r *replica, _ *testkit.Barrier) {
				s.begun("a", 1)
				r.kill()
			},
		},
		{
			name: "after the answer, before the record", posted: true, killAt: atBarrier,
			barrier: func(s *stand, l legs) *testkit.Barrier {
				return l.store.Barrier(testkit.ToServer, s.onRecord("succeed", "a"))
			},
		},
		{
			name: "after the record, before the ack", posted: true, known: true, killAt: atBarrier,
			barrier: func(s *stand, l legs) *testkit.Barrier { return l.amqp.Barrier(testkit.ToServer, testkit.BasicAck()) },
		},
	}
}

// crash kills the first replica at the point, with one message on the way, and starts a second one with the same settings. It returns when the message
// was published.
func (p crashPoint) crash(t *testing.T, settings env) (*stand, time.Time) {
	t.Helper()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		return testkit.Action{Hang: p.name == "during the POST" && r.Number == 1}
	})
	l := s.newLegs()
	barrier := p.barrier(s, l)
	first := s.start(l.env, crashEnv(), settings)
	published := time.Now()
	s.publish("a")
	p.killAt(s, first, barrier)
	s.start(crashEnv(), settings)
	return s, published
}

// Catches: ack before record or before the answer (the message is lost), a takeover before the request deadline, a takeover that
// forgets that the outcome is unknown, a success recorded after the ack.
func TestKillThenRetry(t *testing.T) {
	t.Parallel()
	for _, point := range crashPoints() {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s, published := point.crash(t, nil)
			switch {
			case point.known:
				s.settled()
				s.once("a")
			case point.posted:
				s.answeredBy("a", 2)
				s.settled()
				posts := s.posts("a", 2)
				s.repeated(posts[0], posts[1])
			default: // cannot be told from a kill in the POST
				s.answered("a")
				s.settled()
				only := s.posts("a", 1)[0]
				s.flagged(only, 2)
				if waited := only.Began.Sub(published); waited < crashTimeout {
					t.Errorf("the message was taken over %v after it was published, before the request deadline", waited)
				}
			}
			s.noLetters()
		})
	}
}

// Catches: FORWARD_ON_UNKNOWN ignored at a takeover, a letter without its record, a known success treated as unknown.
func TestKillThenDeadLetter(t *testing.T) {
	t.Parallel()
	for _, point := range crashPoints() {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s, _ := point.crash(t, env{"FORWARD_ON_UNKNOWN": "deadletter"})
			if point.known {
				s.settled()
				s.once("a")
				s.noLetters()
				return
			}
			s.letter("a", "unknown-outcome")
			s.publish("a") // nor does a copy bring it back to work
			s.letter("a", "unknown-outcome")
			s.settled()
			if point.posted {
				s.posts("a", 1)
			} else {
				s.posts("a", 0)
			}
		})
	}
}

// Catches: a dead letter published before the record says so, or the message acked before its letter is confirmed.
func TestKillWhileDeadLettering(t *testing.T) {
	t.Parallel()
	for _, point := range []struct {
		name    string
		letters int // that the dead letters then hold
		barrier func(s *stand, l legs) *testkit.Barrier
	}{
		{"before dead is recorded", 1, func(s *stand, l legs) *testkit.Barrier {
			return l.store.Barrier(testkit.ToServer, s.onRecord("bury", "a"))
		}},
		{"after dead is recorded, before the letter", 1, func(s *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicPublish(s.dead))
		}},
		{"after the letter, before its confirm", 2, func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToClient, testkit.BasicAck())
		}},
		{"after the confirm, before the ack", 2, func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
		}},
	} {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: 400} })
			l := s.newLegs()
			barrier := point.barrier(s, l)
			// Under deadletter the first case ends as the others do, without a second POST: nobody knows of the 400.
			settings := env{"FORWARD_ON_UNKNOWN": "deadletter"}
			first := s.start(l.env, crashEnv(), settings)
			s.publish("a")
			undead := l.store.Barrier(testkit.ToServer, s.onRecord("undead", "a")) // it follows an ack that was written
			first.killAt(barrier)
			undead.Drop()
			s.start(crashEnv(), settings)
			letters := s.letters(point.letters)
			s.settled()
			s.posts("a", 1)
			reason := "rejected"
			if point.name == "before dead is recorded" {
				reason = "unknown-outcome"
			}
			s.lettersOf(letters, "a", reason)
			s.noLetters() // no more of them
		})
	}
}

// Catches: the record of a dead letter deleted when its ack was written rather than received: with the connection the ack is lost, the message
// comes back, and nothing says any more that it is dead.
func TestAckOfADeadLetterLost(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: 400} })
	l := s.newLegs()
	ack := l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
	s.start(l.env)
	s.publish("a")
	s.must(ack.Wait(s.ctx))
	s.outage(500 * time.Millisecond) // time to delete what must not be deleted yet
	ack.Drop()
	letters := s.letters(2)
	s.settled()
	s.posts("a", 1)
	s.lettersOf(letters, "a", "rejected")
}
