package proxy

import (
	"context"
	"errors"
	"time"
)

// heldSlot is a worker slot, with the turn to begin a request where FORWARD_RATE is set. It is used by one goroutine.
type heldSlot struct {
	queue *queue
	turn  bool // to begin a request
	freed bool
}

// begin tells that a request begins.
func (s *heldSlot) begin() {
	if s.turn {
		s.turn = false
		s.queue.pacer.begun()
	}
}

// free gives the slot back, once, and the turn if no request has begun.
func (s *heldSlot) free() {
	if s.turn {
		s.turn = false
		s.queue.pacer.pass()
	}
	if !s.freed {
		s.freed = true
		s.queue.throttle.give()
	}
}

// errHeldTooLong is the end of a wait for a slot while the brake is on: the broker would take the delivery back soon.
var errHeldTooLong = errors.New("the delivery waited too long for a worker slot")

// takeSlot waits until the service and the store answer and a worker slot is free. The caller frees it. The error is
// errHeldTooLong, or the cause of hold's end.
func (q *queue) takeSlot(hold context.Context, m *message) (heldSlot, error) {
	defer q.entered(m)
	since := time.Now()
	if m.entering {
		since = m.received // it has waited in line
	}
	q.held(1)
	defer q.held(-1)
	for {
		if err := q.serviceGate.wait(hold); err != nil {
			return heldSlot{}, err
		}
		if err := q.waitForStore(hold); err != nil {
			return heldSlot{}, err
		}
		if err := q.throttle.take(hold, since); err != nil {
			return heldSlot{}, err
		}
		slot := heldSlot{queue: q}
		if err := q.pacer.wait(hold); err != nil {
			slot.free()
			return heldSlot{}, err
		}
		slot.turn = q.pacer.interval > 0
		braked := slot.turn && q.throttle.holdsBack() // since the slot was given
		if !braked && q.serviceGate.isOpen() && (q.needsNoStore() || q.storeGate.isOpen()) && hold.Err() == nil {
			return slot, nil
		}
		slot.free()
	}
}

// noSlot is how a turn ends that got no slot.
func (q *queue) noSlot(hold context.Context, m *message, err error) turn {
	switch {
	case !errors.Is(err, errHeldTooLong):
		return over(ending{fate: fateReturned})
	case q.parkSoon(hold, m, returnStep):
		return over(ending{fate: fateParked})
	}
	return again(0)
}
