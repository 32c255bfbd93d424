package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: an ack sent by its number rather than by its session. Tags begin at 1 on every channel: the ack of the first message, which another consumer has
// by then, would settle the second one, and the end of the process would lose it.
func TestAckOfAnEndedSession(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Key == "m0":
			return testkit.Action{Wait: answer}
		case r.Key == "m1" && r.Number == 1:
			return testkit.Action{Hang: true}
		}
		return testkit.Action{}
	})
	l := s.newLegs()
	single := env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1"}
	r := s.start(l.env, crashEnv(), env{"FORWARD_TIMEOUT": "10s"}, single)
	s.publish("m0", "m1")
	s.begun("m0", 1)
	since := time.Now()
	l.amqp.Refuse()
	l.amqp.Reset()
	r.lost(since, promptly, "connection lost", "why: network")
	r.without("connection refused")
	other := s.keep(1, false)
	if id := other.Deliveries[0].MessageId; id != "m0" {
		t.Fatalf("the other consumer has %s, want m0", id)
	}
	ack := l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
	delivered := l.amqp.Barrier(testkit.ToClient, testkit.BasicDeliver(s.queue))
	s.must(l.amqp.Reopen())
	s.must(delivered.Wait(s.ctx)) // m1, as number 1
	delivered.Release()
	close(answer)
	r.waitLog("settled", "id", "m0")
	s.begun("m1", 1)
	s.outage(300 * time.Millisecond) // time to send what must not be sent
	select {
	case <-ack.Reached():
		t.Error("the result of an ended session was sent to the broker")
	default:
	}
	ack.Release() // disarmed, or what was sent arrives before the end of the process does
	s.outage(100 * time.Millisecond)
	r.kill()
	s.eventually("m1 is back in the queue", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready == 1, err
	})
	s.must(other.Release())
	s.start(crashEnv(), single)
	s.answeredBy("m1", 2)
	s.settled()
	s.posts("m0", 1)
	s.flagged(s.posts("m1", 2)[1], 2)
	s.noLetters()
}

// Catches: acks of the new channel taken for stale because their numbers are small; a channel that the broker closed and nobody opens again.
func TestAcksAfterTheBrokerClosedTheChannel(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l := s.newLegs()
	r := s.start(l.env)
	r.waitConsuming()
	var all []string
	for _, prefix := range []string{"first", "second", "third"} {
		orders := ids(prefix, 50)
		all = append(all, orders...)
		ack := l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
		s.publish(orders...)
		s.must(ack.Wait(s.ctx))
		since := time.Now()
		ack.Insert(refusedDeclare(ack.Held()))
		r.lost(since, promptly, "PRECONDITION_FAILED", "inequivalent arg", "why: channel-closed")
		s.answered(orders...)
		s.emptied()
	}
	s.settled()
	s.once(all...)
	s.noLetters()
}

// refusedDeclare declares an exchange of every broker with another type than it has: an error for which the broker closes the channel.
func refusedDeclare(on []byte) []byte {
	short := func(text string) []byte { return append([]byte{byte(len(text))}, text...) }
	arguments := []byte{0, 0}
	arguments = append(arguments, short("amq.direct")...)
	arguments = append(arguments, short("fanout")...)
	arguments = append(arguments, 2, 0, 0, 0, 0) // durable; no arguments
	return testkit.AMQPMethodFrame(on, 40, 10, arguments)
}
