package e2e

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// storeOutage is a way for the store to be away.
type storeOutage struct {
	name     string
	down, up func(s *stand, l legs)
}

// Catches: a POST without a claim, an error taken for a verdict, an ack without a record, a success forgotten because it could not be recorded at
// once, a claim or record in a dead socket never given up.
func TestStoreDownUnderLoad(t *testing.T) {
	t.Parallel()
	for _, outage := range []storeOutage{
		{
			"killed",
			func(s *stand, _ legs) { s.must(s.redis.Kill()) },
			func(s *stand, _ legs) { s.must(s.redis.Start(s.ctx)) },
		},
		{
			"stalled",
			func(_ *stand, l legs) { l.store.Stall() },
			func(_ *stand, l legs) { l.store.Unstall() },
		},
	} {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel()
			redis, err := testkit.StartRedis(t.Context(), testkit.RedisOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := redis.Close(); err != nil {
					t.Error(err)
				}
			})
			storeDownUnderLoad(t, redis, outage)
		})
	}
}

func storeDownUnderLoad(t *testing.T, redis *testkit.Redis, outage storeOutage) {
	s := newStandOn(t, shared.Broker, redis, func(testkit.Received) testkit.Action {
		return testkit.Action{Delay: 30 * time.Millisecond}
	})
	l := s.newLegs()
	orders := ids("order", 300)
	s.start(l.env)
	s.publish(orders...)
	s.underWay(60)
	outage.down(s, l)
	s.outage(7 * time.Second) // requests that had their claim end, acks that were on their way arrive, and the broker counts: a quorum queue tells its numbers every 5 seconds
	posts := s.service.Journal.Count()
	left := s.left()
	s.outage(8 * time.Second)
	if n := s.service.Journal.Count(); n != posts {
		t.Errorf("%d POSTs while the store was down", n-posts)
	}
	if n := s.left(); n != left {
		t.Errorf("%d messages acked while the store was down", left-n)
	}
	outage.up(s, l)
	s.answered(orders...)
	s.publish(orders[:100]...)
	s.settled()
	s.once(orders...)
	s.noLetters()
}

// left is how many messages the queue still has.
func (s *stand) left() int {
	s.t.Helper()
	ready, unacknowledged, err := s.counts()
	s.must(err)
	return ready + unacknowledged
}

// Catches: DEDUP_ON_STORE_DOWN=forward that waits, does not flag, or forgets what was done: a copy that comes when the store is back is executed again.
func TestStoreDownForward(t *testing.T) {
	t.Parallel()
	redis, err := testkit.StartRedis(t.Context(), testkit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := redis.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newStandOn(t, shared.Broker, redis, nil)
	replica := s.start(env{"DEDUP_ON_STORE_DOWN": "forward"})
	s.publish("before")
	s.answered("before")
	s.must(redis.Kill())
	s.publish("during")
	s.answered("during")
	replica.waitMissing("store")
	s.must(redis.Start(s.ctx))
	replica.waitMetric(`rabbitonce_store_operations_total{operation="succeed",result="ok"}`, 2) // also that of "during"
	replica.waitConsuming()
	s.publish("before", "during", "after")
	s.answered("after")
	s.settled()
	if e := s.posts("during", 1)[0]; !e.Unknown || e.Attempt != "1" {
		t.Errorf("POST without a claim says attempt %s, unknown %t; want 1, flagged", e.Attempt, e.Unknown)
	}
	s.posts("before", 1)
	s.posts("after", 1)
}
