package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// fate is how a delivery's stay here ended: log value and metric label.
type fate uint8

const (
	fateDone       fate = iota // executed, recorded, acknowledged
	fateUnrecorded             // executed and acknowledged, but the success could not be recorded in time
	fateDuplicate              // done before: acknowledged without a POST
	fateDead                   // in the dead letters, acknowledged
	fateParked                 // moved to a wait queue, acknowledged
	fateReturned               // given back to the queue, or its session ended
)

func fates() []fate {
	return []fate{fateDone, fateUnrecorded, fateDuplicate, fateDead, fateParked, fateReturned}
}

func (f fate) String() string {
	return [...]string{"done", "unrecorded", "duplicate", "dead_letter", "parked", "returned"}[f]
}

// duplicate is how a copy met its message: metric label.
type duplicate uint8

const (
	duplicateDone     duplicate = iota // done before
	duplicateBusy                      // being worked on
	duplicateWaiting                   // waiting for its next attempt
	duplicateDead                      // dead-lettered before
	duplicateConflict                  // same ID, other payload
)

func duplicates() []duplicate {
	return []duplicate{duplicateDone, duplicateBusy, duplicateWaiting, duplicateDead, duplicateConflict}
}

func (d duplicate) String() string {
	return [...]string{"done", "busy", "waiting", "dead", "conflict"}[d]
}

// ending is a fate and what remains to be done for it.
type ending struct {
	fate  fate
	clear string // fateDead: dead-id of a record to delete once the ack was sent; "" keeps the record
}

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
)

var errLeaseLost = errors.New("the lease of the claim was lost")

// handle is the life of one delivery, from its arrival to its settlement.
func (q *queue) handle(work, hold context.Context, s *session, d *delivery) {
	m, identified := q.identify(s, d)
	var end ending
	if identified {
		end = q.process(work, hold, m)
	} else {
		end = q.withoutID(work, hold, m)
	}
	if end.fate == fateReturned {
		end = q.keepFromLimit(work, hold, m)
	}
	q.settle(work, m, end)
}

// settle carries an ending out on the session that brought the delivery.
func (q *queue) settle(work context.Context, m *message, end ending) {
	q.metrics.fates[end.fate].Inc()
	q.log.Debug("settled", "id", m.logID(), "fate", end.fate.String(), "took", time.Since(m.received).String())
	switch {
	case end.fate == fateReturned:
		m.session.settle(m.DeliveryTag, settleGiveBack)
	case end.clear != "":
		if m.session.ackNow(m.DeliveryTag) {
			q.clearDead(work, m, end.clear)
		}
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
		if q.rest(hold, rest) != nil {
			return ending{fate: fateReturned}
		}
	}
}

// keepFromLimit gives a delivery back, unless the broker has seen it come back so often that one more time could be
// too often: then it takes the way through a wait queue, which starts the broker's count anew.
func (q *queue) keepFromLimit(work, hold context.Context, m *message) ending {
	if brokerReturns(m.delivery) >= returnsLimit && !errors.Is(context.Cause(hold), errSessionEnded) {
		ctx, cancel := context.WithTimeout(work, recordTimeout)
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
	if _, err := q.copies.enter(hold, m.key); err != nil {
		return over(ending{fate: fateReturned})
	}
	defer q.copies.leave(m.key)
	if err := q.takeSlot(hold); err != nil {
		return over(ending{fate: fateReturned})
	}
	slot := heldSlot{queue: q}
	defer slot.free()

	claim, mv, err := q.claim(work, hold, m)
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
		res := q.post(work, m, claim)
		slot.free()
		return q.conclude(work, hold, m, claim, res)
	case stepAck:
		q.metrics.duplicates[duplicateDone].Inc()
		return over(ending{fate: fateDuplicate})
	case stepRefuse:
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
	}
	pause := q.waitFor(m, claim, polls)
	return later(pause, pause)
}

// waitFor is how long a copy waits for a message that somebody else has: until the record's own time when the record
// waits itself, so that no copy jumps the ladder; a growing pause while somebody is at work, for as long as the claim
// lasts after RETRY_HOLD of asking.
func (q *queue) waitFor(m *message, claim dedup.Claim, polls *backoff) time.Duration {
	kind, pause := duplicateBusy, claim.Wait
	if claim.Verdict == dedup.Waiting {
		kind = duplicateWaiting
	} else if !m.busyTooLong(q.cfg.Retry.Hold) {
		pause = polls.pause()
	}
	if !m.met {
		m.met = true
		q.metrics.duplicates[kind].Inc()
	}
	return pause
}

// heldSlot is a worker slot that is given back once.
type heldSlot struct {
	queue *queue
	freed bool
}

func (s *heldSlot) free() {
	if !s.freed {
		s.freed = true
		s.queue.giveSlot()
	}
}

// claim claims the message and decides what follows. It asks until the store answers, always with the same token, so
// that a claim whose reply was lost is recognised as ours. A granted claim that came too slowly to POST under it is
// claimed again. The error is errUnclaimed when the store is down and the queue goes on without it,
// dedup.ErrForeignRecord when the key is spoilt, else it means that hold ended first; what was claimed by then is
// given back.
func (q *queue) claim(work, hold context.Context, m *message) (dedup.Claim, move, error) {
	req := dedup.ClaimRequest{
		Key: m.key, Token: dedup.NewToken(), Fingerprint: m.fingerprint, DeadID: m.deadID(),
		Compare:   q.cfg.Dedup.OnConflict == dedup.ConflictDeadletter,
		Lease:     q.cfg.Dedup.Lease,
		Deadline:  q.cfg.Forward.Timeout + claimSlack,
		Retention: q.cfg.Dedup.Retention,
	}
	if q.needsNoStore() && !q.storeGate.isOpen() {
		return dedup.Claim{}, move{}, errUnclaimed
	}
	var held *dedup.Lease // of an earlier turn of this loop
	for tries := 1; ; tries++ {
		claim, err := q.store.Claim(work, req)
		if claim.Lease != nil {
			held = claim.Lease
		}
		if errors.Is(err, dedup.ErrForeignRecord) {
			drop(held)
			return claim, move{}, err
		}
		if err != nil && work.Err() == nil {
			q.storeGate.close(err)
			if q.needsNoStore() && hold.Err() == nil {
				drop(held)
				return claim, move{}, errUnclaimed
			}
			_ = q.storeGate.wait(hold)
		}
		if hold.Err() != nil {
			q.abandon(work, m, req, held, err)
			return claim, move{}, context.Cause(hold)
		}
		if err != nil {
			continue
		}
		if claim.Lease == nil {
			drop(held) // the record is somebody else's by now
		}
		mv := decideClaim(claim, q.rules)
		if mv.step != stepPost || q.fresh(claim.Lease) {
			return claim, mv, nil
		}
		if tries%10 == 0 {
			q.log.Warn("the store answers too slowly for DEDUP_LEASE: nothing is POSTed under a claim that is almost over; set a longer DEDUP_LEASE", "id", m.logID(), "claims", tries)
		}
	}
}

// drop lets a lease run out that is not used; nil is none.
func drop(l *dedup.Lease) {
	if l != nil {
		l.Drop()
	}
}

// fresh tells whether a POST may begin under the lease: enough of it is left to renew it in time, and the request,
// given its full timeout, ends before the deadline that the record states.
func (q *queue) fresh(l *dedup.Lease) bool {
	return l.Left() >= q.cfg.Dedup.Lease/3 && l.DeadlineLeft() >= q.cfg.Forward.Timeout
}

// permit is asked right before the first byte of a request leaves: a process that was stopped since the claim may
// wake up just there.
func (q *queue) permit(l *dedup.Lease) error {
	if l.Left() < q.cfg.Dedup.Lease/10 {
		return errLeaseLost
	}
	return nil
}

// post sends the request. It is cut off when the lease is lost or work ends.
func (q *queue) post(work context.Context, m *message, claim dedup.Claim) forward.Result {
	ctx, cancel := context.WithCancelCause(work)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-claim.Lease.Lost():
			cancel(errLeaseLost)
		case <-ctx.Done():
		}
	}()
	// An attempt without a claim, while the store was down, is known here alone.
	unknown := claim.Record.EverUnknown || m.unclaimed.Unknown > 0
	r := q.request(m, claim.Record.Attempts, unknown, q.cfg.Forward.Timeout)
	r.Permit = func() error { return q.permit(claim.Lease) }
	res := q.send(ctx, r)
	cancel(nil)
	<-watched
	return res
}

// send makes one request and measures it.
func (q *queue) send(ctx context.Context, r *forward.Request) forward.Result {
	q.inFlight.Add(1)
	q.metrics.inFlight.Inc()
	began := time.Now()
	res := q.service.Post(ctx, r)
	q.metrics.requests[res.Outcome].Observe(time.Since(began).Seconds())
	q.inFlight.Add(-1)
	q.metrics.inFlight.Dec()
	if res.Outcome == forward.Unreachable && ctx.Err() == nil && !errors.Is(res.Err, errLeaseLost) {
		q.serviceGate.close(res.Err)
	}
	return res
}

// conclude writes the outcome of a POST down and says what becomes of the delivery.
func (q *queue) conclude(work, hold context.Context, m *message, claim dedup.Claim, res forward.Result) turn {
	q.noteDropped(m, res)
	defer claim.Lease.Drop() // whatever became of it, this turn ends here
	mv := decideOutcome(res, claim.Record, claim.Now.Sub(claim.Record.FirstClaimed), q.rules)
	q.logOutcome(m, claim, res, mv)
	switch mv.step {
	case stepSucceed:
		return over(q.recordSuccess(work, m, claim, res))
	case stepRelease:
		q.release(work, claim.Lease)
		return again(0)
	case stepBury:
		return q.bury(work, hold, m, claim, mv.reason, &res)
	}
	return q.retry(work, m, claim, mv)
}

// retry writes that the message waits, and waits.
func (q *queue) retry(work context.Context, m *message, claim dedup.Claim, mv move) turn {
	pause, nominal := mv.jittered(), mv.pause
	result, err := q.record(work, func(ctx context.Context) (dedup.Settlement, error) {
		return q.store.Wait(ctx, claim.Lease, pause, mv.class)
	})
	if t, stop := q.notApplied(result, err); stop {
		return t
	}
	if mv.class == dedup.WaitUnknown {
		// The service may be at work until then. The store's deadline is later than ours by the time the claim took
		// to get there.
		deadline := claim.Lease.DeadlineLeft() + clockSlack
		pause, nominal = max(pause, deadline), max(nominal, deadline)
	}
	return later(pause, nominal)
}

// notApplied says what follows when a result could not be written: the message is done after all, or the record is
// somebody else's by now and the delivery is claimed anew as a copy, or the store did not answer before the end, and
// the lease will run out.
func (q *queue) notApplied(result dedup.Settlement, err error) (turn, bool) {
	switch {
	case errors.Is(err, dedup.ErrForeignRecord):
		return later(foreignPause, foreignPause), true
	case err != nil:
		return over(ending{fate: fateReturned}), true
	case result == dedup.FoundDone:
		q.metrics.duplicates[duplicateDone].Inc()
		return over(ending{fate: fateDuplicate}), true
	case result != dedup.Applied:
		return again(0), true
	}
	return turn{}, false
}

func (q *queue) noteDropped(m *message, res forward.Result) {
	if res.DroppedHeaders > 0 {
		q.log.Warn("headers of the message did not fit into the request and were left out, the largest first", "id", m.logID(), "left_out", res.DroppedHeaders)
	}
}

// logOutcome writes what a person should see: an outcome that is unknown, a failed attempt at debug.
func (q *queue) logOutcome(m *message, claim dedup.Claim, res forward.Result, mv move) {
	level := slog.LevelDebug
	message := "posted"
	if res.Outcome == forward.Unknown {
		level, message = slog.LevelWarn, "the outcome of a request is unknown: the service may have done the work"
	}
	if !q.log.Enabled(context.Background(), level) {
		return
	}
	q.log.Log(context.Background(), level, message, "id", m.logID(), "outcome", res.Outcome.String(), "status", res.Status,
		"attempt", claim.Record.Attempts, "next", mv.step.String(), "error", errText(res.Err))
}
