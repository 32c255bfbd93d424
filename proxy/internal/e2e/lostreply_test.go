package e2e

import (
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a claim whose reply was lost taken for somebody else's when it is made again (the token ignored), which waits for a lease
// nobody holds and then flags the message.
func TestLostReplyOfAClaim(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l := s.newLegs()
	lost := l.store.Barrier(testkit.ToClient, s.onRecord("claim", "a"))
	s.start(l.env)
	s.publish("a")
	s.must(lost.Wait(s.ctx))
	lost.Drop()
	s.answered("a")
	s.settled()
	s.once("a")
}

// Catches: a success that may be on record not recorded again, or the POST repeated because of it.
func TestLostReplyOfASuccess(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l := s.newLegs()
	lost := l.store.Barrier(testkit.ToClient, s.onRecord("succeed", "a"))
	s.start(l.env)
	s.publish("a")
	s.must(lost.Wait(s.ctx))
	lost.Drop()
	s.publish("a", "b")
	s.answered("a", "b")
	s.settled()
	s.once("a", "b")
}

// Catches: an ack that did not reach the broker followed by a second POST.
func TestLostAck(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l := s.newLegs()
	lost := l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
	r := s.start(l.env)
	s.publish("a")
	s.must(lost.Wait(s.ctx))
	lost.Drop()
	r.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 1)
	s.settled()
	s.once("a")
}

// Catches: work given up with its session, the late success not recorded, the old delivery's ack sent on the new channel.
func TestConnectionCutWhilePOSTsRun(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Wait: release} })
	l := s.newLegs()
	all := ids("order", 12)
	r := s.start(l.env)
	s.publish(all...)
	s.underWay(4)
	l.amqp.Reset()
	r.waitLog("waiting", "part", "consumer")
	s.eventually("the messages are delivered again", func() (bool, error) {
		ready, unacknowledged, err := s.counts()
		return ready == 0 && unacknowledged == len(all), err
	})
	close(release)
	s.answered(all...)
	s.settled()
	s.once(all...)
}
