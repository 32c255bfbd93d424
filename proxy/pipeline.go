package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"rabbitonce/dedup"
)

const (
	// claimSlack is how much later than FORWARD_TIMEOUT after the claim a request may end: the time from claim to POST.
	claimSlack = time.Second
	// clockSlack is how much later than here a deadline may be for the store; a claim that comes too early is told to
	// wait for the rest.
	clockSlack = 5 * time.Millisecond
	// foreignPause is how long a message waits whose key in the store holds something else.
	foreignPause = 30 * time.Second
	// longestRest bounds a wait here, where a message cannot or may not wait elsewhere.
	longestRest = 5 * time.Minute
	// pollFirst and pollLast bound the pauses of a copy that asks for a message that somebody else has.
	pollFirst = 50 * time.Millisecond
	pollLast  = time.Second
	// lastPark bounds the try to move a message to a wait queue at the end of its session.
	lastPark = settlingTime + 2*time.Second
)

var errLeaseLost = errors.New("the lease of the claim was lost")

// handle is the life of one delivery, from its arrival to its settlement.
func (q *queue) handle(a arrival) {
	work, hold := a.work, a.hold
	defer a.place.leave()
	m, identified := q.identify(a)
	var end ending
	switch {
	case brokerReturns(a.delivery) >= arrivalLimit && q.parkOnArrival(hold, m):
		end.fate = fateParked
	case q.awaitTurn(hold, m) != nil:
		end = ending{fate: fateReturned}
	case identified:
		end = q.process(work, hold, m)
	default:
		end = q.withoutID(work, hold, m)
	}
	q.entered(m)
	if end.fate == fateReturned {
		end = q.keepFromLimit(work, hold, m)
	}
	q.settle(work, m, end)
}

// parkOnArrival moves a delivery to a wait queue that the broker has seen come back too often for another try here.
func (q *queue) parkOnArrival(hold context.Context, m *message) bool {
	q.entered(m)
	return q.parkSoon(hold, m, returnStep)
}

// entered tells that the message waits for its first slot no longer.
func (q *queue) entered(m *message) {
	if m.entering {
		m.entering = false
		q.intake.entered()
	}
}

// settle carries an ending out on the session that brought the delivery.
func (q *queue) settle(work context.Context, m *message, end ending) {
	if end.reject != nil && !q.reject(m, *end.reject) {
		end = ending{fate: fateReturned} // its session has ended
	}
	q.metrics.fates[end.fate].Inc()
	if q.log.Enabled(work, slog.LevelDebug) {
		q.log.Debug("settled", "id", m.logID(), "fate", end.fate.String(), "took", time.Since(m.received).String())
	}
	switch {
	case end.fate == fateReturned:
		m.session.settle(m.DeliveryTag, settleGiveBack)
	case end.clear != "":
		if end.reject != nil || m.session.ackNow(m.DeliveryTag) {
			q.clearDead(m, end.clear)
		}
	case end.reject != nil: // settled by now
	case end.fate != fateUnrecorded: // acknowledged before, by recordSuccess
		m.session.settle(m.DeliveryTag, settleAck)
	}
	if end.fate == fateDone {
		q.metrics.endToEnd.Observe(time.Since(m.received).Seconds())
	}
}

// process takes a message with an ID through as many turns as it needs.
func (q *queue) process(work, hold context.Context, m *message) ending {
	polls := backoff{first: pollFirst, last: pollLast}
	for {
		t := q.turn(work, hold, m, &polls)
		if t.over {
			return t.ending
		}
		due := time.Now().Add(t.pause)
		if t.free > q.cfg.Retry.Hold && q.parkFor(hold, m, t.free) {
			return ending{fate: fateParked}
		}
		rest := time.Until(due)
		if t.free > 0 {
			rest = min(rest, longestRest) // the record says when it is due
		}
		parked, err := q.rest(hold, m, rest, t.free)
		switch {
		case parked:
			return ending{fate: fateParked}
		case err != nil:
			return ending{fate: fateReturned}
		}
	}
}

// keepFromLimit gives a delivery back, unless the broker has seen it come back so often that one more time could be
// too often: then it takes the way through a wait queue, which starts the broker's count anew.
func (q *queue) keepFromLimit(work, hold context.Context, m *message) ending {
	if brokerReturns(m.delivery) >= returnsLimit && !errors.Is(context.Cause(hold), errSessionEnded) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(work), lastPark) // a POST that was cut off comes here too
		defer cancel()
		if q.park(ctx, m, returnStep) {
			return ending{fate: fateParked}
		}
	}
	return ending{fate: fateReturned}
}

// turn is the result of one turn of a message: it is over, or it goes on after a pause.
type turn struct {
	over   bool
	ending ending
	pause  time.Duration
	free   time.Duration // the pause before jitter, when the message may wait elsewhere: all of it is in the store
}

func over(e ending) turn             { return turn{over: true, ending: e} }
func again(pause time.Duration) turn { return turn{pause: pause} }

// later is again, for a message that may go to a wait queue meanwhile. nominal is the pause before jitter.
func later(pause, nominal time.Duration) turn { return turn{pause: pause, free: nominal} }

// turn claims the message and acts on the verdict. Copies in this process take turns; a POST needs a worker slot.
func (q *queue) turn(work, hold context.Context, m *message, polls *backoff) turn {
	if m.key == "" {
		return q.unclaimedTurn(work, hold, m)
	}
	if !q.copies.tryEnter(m.key) {
		q.entered(m)
		if err := q.copies.enter(hold, m.key); err != nil {
			return over(ending{fate: fateReturned})
		}
	}
	defer q.copies.leave(m.key)
	slot, err := q.takeSlot(hold, m)
	if err != nil {
		return q.noSlot(hold, m, err)
	}
	defer slot.free()

	req := q.claimRequest(m)
	claim, mv, err := q.claim(work, hold, m, req, nil)
	if err == nil && mv.step == stepLookup && q.cfg.Dedup.Mode != dedup.ModeObserve {
		slot.begin() // it is a request, too; the POST that may follow goes with it
		t, cleared := q.lookUp(work, hold, m, claim, &slot)
		if !cleared {
			return t
		}
		claim, mv, err = q.claim(work, hold, m, req, claim.Lease)
	}
	switch {
	case errors.Is(err, errUnclaimed):
		return q.unclaimedAttempt(work, hold, m, &slot)
	case errors.Is(err, dedup.ErrForeignRecord):
		q.log.Warn("a message cannot be claimed", "id", m.logID(), "error", err.Error())
		return later(foreignPause, foreignPause)
	case err != nil:
		return over(ending{fate: fateReturned})
	case mv.step != stepPost && q.cfg.Dedup.Mode == dedup.ModeObserve:
		q.observe(work, m, claim)
		return q.unclaimedAttempt(work, hold, m, &slot)
	}
	switch mv.step {
	case stepPost:
		m.met = true
		slot.begin()
		began := time.Now()
		res := q.post(work, m, claim)
		q.noteOutcome(res, began) // before the next one has the slot
		slot.free()
		return q.conclude(work, hold, m, claim, res)
	case stepAck:
		q.metrics.duplicates[duplicateDone].Inc()
		return over(ending{fate: fateDuplicate})
	case stepRefuse:
		q.setback(setback{reason: dedup.ReasonConflict})
		slot.free()
		q.metrics.duplicates[duplicateConflict].Inc()
		return q.publishLetter(hold, m, obituary{reason: mv.reason, attempts: claim.Record.Attempts, first: claim.Record.FirstClaimed})
	case stepPublish:
		slot.free()
		q.metrics.duplicates[duplicateDead].Inc()
		return q.publishLetter(hold, m, obituaryOf(claim.Record))
	case stepBury:
		slot.free()
		return q.bury(work, hold, m, claim, mv.reason, nil)
	case stepLookup: // an outcome became unknown between the two claims
		slot.free()
		q.release(work, claim.Lease)
		return again(0)
	}
	pause := q.waitFor(m, claim, polls)
	return later(pause, pause)
}

// waitFor is how long a copy waits for a message that somebody else has: until the record's own time when the record
// waits itself, so that no copy jumps the ladder; a growing pause while somebody is at work, and for as long as the
// claim lasts after RETRY_HOLD of asking, when nobody stands behind it.
func (q *queue) waitFor(m *message, claim dedup.Claim, polls *backoff) time.Duration {
	kind, pause := duplicateBusy, claim.Wait
	if claim.Verdict == dedup.Waiting {
		kind = duplicateWaiting
	} else if q.lanes != nil || !m.busyTooLong(q.cfg.Retry.Hold) { // a line stands still meanwhile
		pause = polls.pause()
	}
	if !m.met {
		m.met = true
		q.metrics.duplicates[kind].Inc()
	}
	return pause
}
