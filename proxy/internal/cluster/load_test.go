package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

const (
	batch     = 10
	lead      = 40              // how many IDs the load may be ahead of the service
	confirmed = 5 * time.Second // how long a confirm may take before the batch is published again
)

// load publishes new IDs until it is told to stop, to whichever node takes them. A batch without a confirm is published again, so that
// the queue holds copies after each fault, as it would with any publisher that must not lose.
type load struct {
	stand *stand
	stop  chan struct{}
	ended chan struct{} // closed when no more is published

	mu  sync.Mutex
	ids []string // confirmed
}

func (s *stand) startLoad() *load {
	l := &load{stand: s, stop: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

func (l *load) run() {
	defer close(l.ended)
	var client *testkit.Client
	defer func() {
		if client != nil {
			_ = client.Close()
		}
	}()
	for first := 0; ; first += batch {
		publishings, names := orders(first, batch)
		for !l.publish(&client, publishings) {
			select {
			case <-time.After(100 * time.Millisecond): // nodes are down: not in a tight loop
			case <-l.stand.ctx.Done():
				return
			}
		}
		l.mu.Lock()
		l.ids = append(l.ids, names...)
		l.mu.Unlock()
		if l.over() || l.stand.answered(l.stand.ctx, max(0, first+batch-lead)) != nil {
			return
		}
	}
}

func (l *load) over() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// publish reports whether a batch was confirmed, and leaves a client that works, or none.
func (l *load) publish(client **testkit.Client, publishings []amqp.Publishing) bool {
	ctx, cancel := context.WithTimeout(l.stand.ctx, confirmed)
	defer cancel()
	for _, node := range l.stand.nodes {
		if *client == nil {
			var err error
			if *client, err = testkit.Dial(node.URL); err != nil {
				*client = nil
				continue
			}
		}
		if (*client).PublishTo(ctx, l.stand.queue, publishings...) == nil {
			return true
		}
		_ = (*client).Close()
		*client = nil
	}
	return false
}

// finish stops the load and returns what was confirmed.
func (l *load) finish() []string {
	close(l.stop)
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids
}

func orders(first, n int) (publishings []amqp.Publishing, ids []string) {
	for i := range n {
		id := fmt.Sprintf("order-%d", first+i)
		publishings, ids = append(publishings, message(id)), append(ids, id)
	}
	return publishings, ids
}

func message(id string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)}
}

// answered waits until n different IDs were answered with a 2xx.
func (s *stand) answered(ctx context.Context, n int) error {
	return s.service.Journal.Wait(ctx, func(entries []testkit.Entry) bool {
		good := map[string]bool{}
		for _, e := range entries {
			if e.Status/100 == 2 {
				good[e.Key] = true
			}
		}
		return len(good) >= n
	})
}

// progress waits until the load and the replica have gone on from here: new IDs were published and answered.
func (s *stand) progress() {
	s.t.Helper()
	s.must(s.answered(s.ctx, len(s.service.Journal.Keys())+lead+3*batch))
}

// allDone stops the load and wants all of it done once, and nothing left: the queue empty, also when the replica is gone, and no dead letters.
// Apart are the IDs that did not come from the load, and how many POSTs of each there are to be.
func (s *stand) allDone(apart map[string]int) {
	s.t.Helper()
	ids := s.load.finish()
	s.must(s.answered(s.ctx, len(ids)))
	s.emptied()
	s.must(s.replica.Kill())
	s.stillEmpty()
	keys := s.service.Journal.Keys()
	for _, id := range ids {
		s.once(id, keys[id])
		delete(keys, id)
	}
	for id, entries := range keys {
		if len(entries) != apart[id] {
			s.t.Errorf("%d POSTs of %s, want %d: %+v", len(entries), id, apart[id], entries)
		}
	}
	if letters := s.lettersNow(); len(letters) > 0 {
		s.t.Errorf("%d dead letters, the first of %s: %v", len(letters), letters[0].MessageId, letters[0].Headers)
	}
}

func (s *stand) once(id string, entries []testkit.Entry) {
	s.t.Helper()
	if len(entries) != 1 {
		s.t.Errorf("%d POSTs of %s, want 1: %+v", len(entries), id, entries)
		return
	}
	if e := entries[0]; e.Status/100 != 2 || e.Attempt != "1" || e.Unknown {
		s.t.Errorf("POST of %s: attempt %s, unknown %t, answered %d; want attempt 1, known, 2xx", id, e.Attempt, e.Unknown, e.Status)
	}
}

// emptied waits until the queue has no message, neither ready nor unacknowledged.
func (s *stand) emptied() {
	s.t.Helper()
	s.eventually("the queue is empty", func() error {
		ready, unacknowledged, err := s.running().QueueCounts(s.ctx, s.queue)
		if err == nil && ready+unacknowledged > 0 {
			err = fmt.Errorf("%d ready, %d unacknowledged", ready, unacknowledged)
		}
		return err
	})
}

// stillEmpty wants nothing to come back to the queue when its consumer has gone.
func (s *stand) stillEmpty() {
	s.t.Helper()
	s.eventually("the queue has no consumer", func() error {
		return s.onAnyNode(func(c *testkit.Client) error {
			ready, consumers, err := c.Depth(s.queue)
			if err == nil && consumers > 0 {
				err = fmt.Errorf("%d consumers", consumers)
			}
			if err == nil && ready > 0 {
				s.t.Errorf("%d messages came back to the queue: they were not acknowledged", ready)
			}
			return err
		})
	})
}

// lettersNow takes what is in the dead-letter queue. Its leader may have to be elected first, and a queue without one says that it is empty:
// a letter of the test's own shows that all was seen.
func (s *stand) lettersNow() []amqp.Delivery {
	s.t.Helper()
	var letters []amqp.Delivery
	s.eventually("the dead letters are read", func() error {
		return s.onAnyNode(func(c *testkit.Client) error {
			if err := c.PublishTo(s.ctx, s.queue+".dead", message("last")); err != nil {
				return err
			}
			for {
				taken, err := c.Take(s.ctx, s.queue+".dead", 1)
				if err != nil || taken[0].MessageId == "last" {
					return err
				}
				letters = append(letters, taken[0])
			}
		})
	})
	return letters
}
