package e2e

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a cancelled consumer on a connection that looks healthy, which nobody starts again; the success of a POST that outlives its queue forgotten.
func TestQueueDeletedWhileAPOSTRuns(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Key == "a" {
			return testkit.Action{Wait: answer}
		}
		return testkit.Action{}
	})
	r := s.start()
	s.publish("a")
	s.begun("a", 1)
	since := time.Now()
	s.must(s.client.Delete(s.queue))
	r.lost(since, promptly, "cancelled the consumer", "deleted", "why: cancelled")
	r.without("NOT_FOUND", "no queue '"+s.queue+"'", "waiting until the queue exists")
	close(answer)
	s.answered("a")
	s.outage(2 * time.Second)
	since = time.Now()
	s.declare(s.queue)
	s.publish("a", "b", "c") // the record outlives the queue
	s.answered("b", "c")
	if took := time.Since(since); took > longestPause+promptly {
		t.Errorf("consuming again %v after the queue was there", took)
	}
	s.settled()
	s.once("a", "b", "c")
	s.noLetters()
}

// Catches: a check for a queue made on the channel that consumes: its failure would end the consumer. And a queue refused because it has other properties
// than one that rabbitonce would declare.
func TestQueuesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	missing := s.queue + ".missing"
	r := s.start(env{"QUEUES": s.queue + "," + missing})
	r.waitStatus("consuming one of two queues", func(st status) bool {
		return len(st.Missing) == 1 && holdsAll(st.Missing[0], []string{missing, "NOT_FOUND"})
	})
	orders := ids("order", 200)
	s.publish(orders...)
	s.answered(orders...)
	channel, _ := s.channel()
	_, err := channel.QueueDeclare(missing, true, true, false, false, amqp.Table{"x-max-priority": 5, "x-message-ttl": 600_000, "x-max-length": 1000})
	s.must(err)
	s.must(s.client.PublishTo(s.ctx, missing, message("other")))
	s.answered("other")
	r.undisturbed(s.queue)
	s.settled()
	s.once(append(orders, "other")...)
}

// Catches: a queue that somebody else has for himself not waited for, or not explained.
func TestQueueHeldByAnother(t *testing.T) {
	t.Parallel()
	t.Run("exclusive consumer", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, nil)
		s.must(s.client.Delete(s.queue))
		s.must(s.client.DeclareClassic(s.queue, nil)) // RabbitMQ 3.10 keeps nobody from a quorum queue
		other := s.keep(0, true)
		s.leavesQueue(func() { s.must(other.Release()) }, "ACCESS_REFUSED", "exclusive use", "has the queue for itself")
	})
	t.Run("exclusive queue", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, nil)
		s.must(s.client.Delete(s.queue))
		channel, end := s.channel()
		_, err := channel.QueueDeclare(s.queue, false, false, true, false, nil)
		s.must(err)
		s.leavesQueue(func() {
			end() // and the queue goes with its owner
			s.eventually("the queue is gone", func() (bool, error) {
				exists, err := s.client.Exists(s.queue)
				return !exists, err
			})
			s.declare(s.queue)
		}, "RESOURCE_LOCKED", "exclusive", "has the queue for itself")
	})
}

func (s *stand) leavesQueue(leave func(), words ...string) {
	s.t.Helper()
	r := s.start()
	r.without(words...)
	leave()
	r.waitConsuming()
	s.publish("a")
	s.answered("a")
	s.settled()
	s.once("a")
}
