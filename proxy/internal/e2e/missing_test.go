package e2e

import "testing"

// Catches: a start that fails, or works half, without one of its parts; a status that does not say which one.
func TestMissingAtStart(t *testing.T) {
	t.Parallel()
	for _, missing := range []struct {
		name, part string
		take, give func(s *stand, l legs)
	}{
		{
			"queue", "consumer",
			func(s *stand, _ legs) { s.must(s.client.Delete(s.queue)) },
			func(s *stand, _ legs) { s.declare(s.queue) },
		},
		{
			"service", "service",
			func(s *stand, _ legs) { s.service.Stop() },
			func(s *stand, _ legs) { s.must(s.service.Start()) },
		},
		{
			"broker", "consumer",
			func(_ *stand, l legs) { l.amqp.Refuse() },
			func(s *stand, l legs) { s.must(l.amqp.Reopen()) },
		},
		{
			"store", "store",
			func(_ *stand, l legs) { l.store.Refuse() },
			func(s *stand, l legs) { s.must(l.store.Reopen()) },
		},
	} {
		t.Run(missing.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			l := s.newLegs()
			missing.take(s, l)
			r := s.start(l.env)
			r.waitMissing(missing.part)
			missing.give(s, l)
			r.waitConsuming()
			s.publish("a")
			s.answered("a")
			s.settled()
			s.once("a")
		})
	}
}

// Catches: a consumer that the broker cancelled and nobody starts again.
func TestQueueDeletedAndBack(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	r := s.start()
	s.publish("a")
	s.answered("a")
	s.emptied()
	s.must(s.client.Delete(s.queue))
	r.waitMissing("consumer")
	s.declare(s.queue)
	r.waitConsuming()
	s.publish("a", "b") // the records outlive the queue
	s.answered("b")
	s.settled()
	s.once("a", "b")
}
