package proxy

import (
	"context"
	"time"
)

// shortRest is a rest that is over sooner than a move to a wait queue is worth: the place is free again by itself.
const shortRest = 500 * time.Millisecond

// rest waits without a slot: between attempts, or while somebody else has the message. free is how long the message may
// wait elsewhere, 0 when it may not. parked tells that the message left for a wait queue meanwhile, since too many rest
// here; the error that hold ended.
func (q *queue) rest(hold context.Context, m *message, d, free time.Duration) (parked bool, err error) {
	q.held(1)
	defer q.held(-1)
	due := time.Now().Add(d)
	g := q.room.enter(m.received, free >= shortRest)
	defer q.room.exit(g)
	timer := time.NewTimer(d)
	defer timer.Stop()
	leave := g.leave
	for {
		select {
		case <-timer.C:
			return false, nil
		case <-hold.Done():
			return false, context.Cause(hold)
		case <-leave:
			if q.makeRoom(hold, m, time.Until(due)) {
				return true, nil
			}
			leave = nil // it rests on
			q.room.stay(g)
		}
	}
}

// makeRoom moves a message that rests for so long to a wait queue: that of the longest step that is not longer, else
// that of RETRY_HOLD, from where it comes back at most so much later.
func (q *queue) makeRoom(hold context.Context, m *message, pause time.Duration) bool {
	step, ok := q.waitStep(pause)
	if !ok {
		step = q.cfg.Retry.Hold
	}
	return q.parkSoon(hold, m, step)
}
