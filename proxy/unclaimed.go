package proxy

import (
	"context"
	"errors"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// Some requests are made without a claim: for a message that has no ID (DEDUP_ON_MISSING_ID=forward), while the store
// is down (DEDUP_ON_STORE_DOWN=forward), and in DEDUP_MODE=observe when a verdict would have stopped the message.
// Nothing protects such a message from being executed twice; its requests are flagged as of unknown outcome, and its
// attempts are counted in memory only.

var errUnclaimed = errors.New("the store is down, and the queue goes on without it")

// lateSuccesses bounds how many successes of a queue wait for the store to come back.
const lateSuccesses = 10_000

// withoutID is the life of a message that has no ID where DEDUP_ID_FROM looks, by DEDUP_ON_MISSING_ID. Two such
// messages are never taken as the same.
func (q *queue) withoutID(work, hold context.Context, m *message) ending {
	q.metrics.missingID.Inc()
	switch {
	case q.cfg.Dedup.OnMissingID == dedup.MissingHash:
		q.setID(m, dedup.HashID(envelope(m.delivery)))
		return q.process(work, hold, m)
	case q.cfg.Dedup.OnMissingID == dedup.MissingForward, q.cfg.Dedup.Mode == dedup.ModeObserve:
		return q.process(work, hold, m)
	}
	for {
		slot, err := q.takeSlot(hold, m) // which the brake holds back
		if err == nil {
			q.setback(setback{reason: dedup.ReasonMissingID})
			slot.free()
			break
		}
		if t := q.noSlot(hold, m, err); t.over {
			return t.ending
		}
	}
	return q.publishLetter(hold, m, obituary{
		reason:  dedup.ReasonMissingID,
		problem: "the message has no ID where DEDUP_ID_FROM looks (" + q.cfg.Dedup.IDFrom.String() + ")",
	}).ending
}

// unclaimedTurn is a turn of a message without an ID.
func (q *queue) unclaimedTurn(work, hold context.Context, m *message) turn {
	slot, err := q.takeSlot(hold, m)
	if err != nil {
		return q.noSlot(hold, m, err)
	}
	defer slot.free()
	return q.unclaimedAttempt(work, hold, m, &slot)
}

// unclaimedAttempt makes one request and acts on its outcome. It gives the slot back after the request.
func (q *queue) unclaimedAttempt(work, hold context.Context, m *message, slot *heldSlot) turn {
	rec := &m.unclaimed
	rec.EverUnknown = true
	rec.Attempts++
	began := time.Now()
	res := forward.Result{Outcome: forward.Reject}
	r, err := q.request(m, rec.Attempts, true, q.cfg.Forward.Timeout)
	if err == nil {
		slot.begin()
		res = q.send(work, r)
	} else {
		res.Err = err
	}
	q.noteOutcome(res, began) // before the next one has the slot
	slot.free()
	q.noteDropped(m, res)
	rules := q.rules
	if rules.onUnknown == forward.UnknownLookup { // nothing is recorded that a lookup could clear up
		rules.onUnknown = forward.UnknownDeadLetter
	}
	mv := decideOutcome(res, *rec, time.Since(m.seen), rules)
	switch mv.step {
	case stepSucceed:
		q.wellDone()
		q.recordLate(work, m, res.Status)
		return over(ending{fate: fateDone})
	case stepRelease:
		rec.Attempts--
		return again(0)
	case stepBury:
		return q.publishLetter(hold, m, obituary{
			reason: mv.reason, attempts: rec.Attempts, status: res.Status, response: res.Excerpt, problem: errText(res.Err), keep: true,
		})
	}
	pause := mv.jittered()
	switch mv.class {
	case dedup.WaitDeferred:
		rec.Deferred++
	case dedup.WaitUnknown:
		rec.Unknown++
		pause = max(pause, q.cfg.Forward.Timeout-time.Since(began)) // the service may be at work until then
	}
	return again(pause)
}

// recordLate writes the success of a request made without a claim, now or when the store is back. The delivery is
// acknowledged meanwhile: nothing waits for the store here. More successes than lateSuccesses, and those that still
// wait at the end, stay unrecorded.
func (q *queue) recordLate(work context.Context, m *message, status int) {
	if m.key == "" {
		return
	}
	select {
	case q.late <- struct{}{}:
	default:
		q.metrics.unrecorded.Inc()
		return
	}
	key, fingerprint := m.key, m.fingerprint // not the message: its body may be large
	q.handlers.Go(func() {
		defer func() { <-q.late }()
		pauses := backoff{first: pollFirst, last: pollLast}
		for {
			err := q.store.Succeed(q.patience.context(), key, status, fingerprint, q.cfg.Dedup.Retention)
			if err == nil {
				return
			}
			q.storeFailed(err)
			if sleep(work, pauses.pause()) != nil {
				q.metrics.unrecorded.Inc()
				q.log.Error("the success of a message stays unrecorded: a copy would be executed again", "key", key)
				return
			}
		}
	})
}

// observe counts a message that a verdict would have stopped, and gives back a claim that would have led to a dead
// letter.
func (q *queue) observe(work context.Context, m *message, claim dedup.Claim) {
	if claim.Lease != nil {
		q.release(work, claim.Lease)
	}
	kinds := map[dedup.Verdict]duplicate{
		dedup.Done: duplicateDone, dedup.Busy: duplicateBusy, dedup.Waiting: duplicateWaiting, dedup.Dead: duplicateDead, dedup.Conflict: duplicateConflict,
	}
	if kind, ok := kinds[claim.Verdict]; ok && !m.met {
		m.met = true
		q.metrics.duplicates[kind].Inc()
		q.log.Debug("observed a copy", "id", m.logID(), "kind", kind.String())
	}
}
