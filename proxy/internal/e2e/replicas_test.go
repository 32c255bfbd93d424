package e2e

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: anything that lets one message in thousands through twice or not at all: a claim in two steps, an ack of the wrong delivery, a
// `multiple` ack that covers an open one.
func TestManyMessagesOnTwoReplicas(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	orders := ids("order", 5000)
	stream := append([]string{}, orders...)
	for _, i := range rand.Perm(len(orders))[:len(orders)/5] {
		stream = append(stream, orders[i])
	}
	rand.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
	settings := env{"FORWARD_CONCURRENCY": "8", "PREFETCH": "64", "LOG_LEVEL": "info"}
	s.start(settings).waitConsuming()
	s.start(settings).waitConsuming()
	s.publish(stream...)
	s.answered(orders...)
	s.settled()
	s.once(orders...)
	s.noLetters()
}

// Catches: a claim's reply that is good however late it is read: neither given up after a while nor judged by a lease that counts from when the
// claim was sent. A process that was stopped between claim and POST would POST what another has done meanwhile.
func TestStoppedBetweenClaimAndPOST(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l := s.newLegs()
	single := env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1"}
	barrier := l.store.Barrier(testkit.ToClient, s.onRecord("claim", "a"))
	stopped := s.start(l.env, crashEnv(), single)
	s.publish("a")
	s.must(barrier.Wait(s.ctx))
	stopped.freeze()
	barrier.Release()
	s.start(crashEnv(), single)
	s.publish("a") // the stopped one's prefetch is full
	s.answered("a")
	s.must(stopped.Resume())
	stopped.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 1)
	s.settled()
	s.flagged(s.posts("a", 1)[0], 2)
	s.noLetters()
}

// Catches: a result written without proof of the claim: the failure of the stopped one would undo the other's success, and the third copy
// would be POSTed.
func TestStoppedDuringThePOST(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "a" && r.Number == 1 {
			return testkit.Action{Wait: answer, Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	single := env{"PREFETCH": "1", "FORWARD_CONCURRENCY": "1", "RETRY_BACKOFF": "100ms"}
	stopped := s.start(crashEnv(), single)
	s.publish("a")
	s.begun("a", 1)
	stopped.freeze()
	close(answer) // the 500 waits in the stopped one's socket
	s.answeredBy("a", 1)
	s.start(crashEnv(), single)
	s.publish("a")
	s.answered("a")
	s.must(stopped.Resume())
	s.emptied()
	s.publish("a", "b")
	s.answered("b")
	s.settled()
	posts := s.posts("a", 2)
	s.repeated(posts[0], posts[1])
	s.noLetters()
}
