package proxy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// memoryShelf is a dead-letter queue that obeys the broker's rules: first in, first out; what is taken is out of sight
// until it is acknowledged.
type memoryShelf struct {
	mu      sync.Mutex // the press puts moved letters in
	ready   []delivery
	taken   map[uint64]delivery
	last    uint64
	acked   []string
	broken  error // what take says
	ackFail error
}

func newMemoryShelf(letters ...delivery) *memoryShelf {
	return &memoryShelf{ready: letters, taken: map[uint64]delivery{}}
}

func (s *memoryShelf) take() (*delivery, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil || len(s.ready) == 0 {
		return nil, false, s.broken
	}
	d := s.ready[0]
	s.ready = s.ready[1:]
	s.last++
	d.DeliveryTag = s.last
	s.taken[s.last] = d
	return &d, true, nil
}

func (s *memoryShelf) ack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.taken[tag]
	if !ok {
		return fmt.Errorf("tag %d is not outstanding", tag)
	}
	if s.ackFail != nil {
		return s.ackFail
	}
	delete(s.taken, tag)
	s.acked = append(s.acked, d.MessageId)
	return nil
}

// left are the letters that are there when the shelf is closed, in no order.
func (s *memoryShelf) left() []string {
	var all []string
	for _, d := range s.taken {
		all = append(all, d.MessageId)
	}
	for _, d := range s.ready {
		all = append(all, d.MessageId)
	}
	slices.Sort(all)
	return all
}

// memoryPress takes publishes; before is called with each, and its error is the broker's answer.
type memoryPress struct {
	shelf  *memoryShelf
	before func(ctx context.Context, id string) error

	mu     sync.Mutex
	source []string
	at     []time.Time
	now    int // publishes under way
	most   int
}

func (p *memoryPress) publish(ctx context.Context, to destination, m letter) error {
	if to.arguments != nil {
		return fmt.Errorf("queue %s would be declared", to.queue)
	}
	p.mu.Lock()
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	err := error(nil)
	if p.before != nil {
		err = p.before(ctx, m.MessageId)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	switch {
	case err != nil:
		return err
	case to.queue == "orders.dead":
		p.shelf.mu.Lock()
		defer p.shelf.mu.Unlock()
		p.shelf.ready = append(p.shelf.ready, arrived(m, to.queue))
	default:
		p.source = append(p.source, m.MessageId)
		p.at = append(p.at, time.Now())
	}
	return nil
}

// lettersFrom are letters of a queue with these IDs.
func lettersFrom(queue string, ids ...string) []delivery {
	var all []delivery
	for _, id := range ids {
		all = append(all, delivery{MessageId: id, Headers: amqp.Table{"x-rabbitonce-queue": queue, "x-rabbitonce-reason": "rejected"}, Body: []byte(id)})
	}
	return all
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%05d", i)
	}
	return ids
}

// newRedrive is a redrive of the queue orders over letters in memory.
func newRedrive(letters ...delivery) (*redrive, *memoryShelf, *memoryPress) {
	s := newMemoryShelf(letters...)
	p := &memoryPress{shelf: s}
	return &redrive{
		selection: selection{queue: "orders"}, deadQueue: "orders.dead", identify: byMessageID, retention: time.Hour, total: len(letters),
		report: newRedriveReport("orders", "orders.dead", false),
		shelf:  s, press: p, progress: func(redriveReport) {}, list: func(deadLetter) {},
	}, s, p
}
