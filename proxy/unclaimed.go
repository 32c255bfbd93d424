package proxy

import (
	"context"
	"time"

	"rabbitonce/dedup"
)

// withoutID is the life of a message that has no ID where DEDUP_ID_FROM looks, by DEDUP_ON_MISSING_ID. Two such messages are never taken as the same.
func (q *queue) withoutID(work, hold context.Context, m *message) ending {
	switch q.cfg.Dedup.OnMissingID {
	case dedup.MissingHash:
		q.setID(m, dedup.HashID(envelope(m.delivery)))
		return q.process(work, hold, m)
	case dedup.MissingForward:
		return q.forwardUnclaimed(work, hold, m)
	}
	return q.publishLetter(hold, m, obituary{
		reason:  dedup.ReasonMissingID,
		problem: "the message has no ID where DEDUP_ID_FROM looks (" + q.cfg.Dedup.IDFrom.String() + ")",
	}).ending
}

// forwardUnclaimed POSTs a message that has no ID. Nothing is claimed, so nothing protects it from being executed twice; every request is
// flagged as of unknown outcome, carries no Idempotency-Key, and its attempts are counted in memory only.
func (q *queue) forwardUnclaimed(work, hold context.Context, m *message) ending {
	rec := dedup.Record{EverUnknown: true}
	for {
		if q.takeSlot(hold) != nil {
			return ending{fate: fateReturned}
		}
		rec.Attempts++
		res := q.send(work, q.request(m, rec.Attempts, true, q.cfg.Forward.Timeout))
		q.giveSlot()
		mv := decideOutcome(res, rec, time.Since(m.received), q.rules)
		switch mv.step {
		case stepSucceed:
			return ending{fate: fateDone}
		case stepRelease:
			rec.Attempts--
			continue
		case stepBury:
			return q.publishLetter(hold, m, obituary{
				reason: mv.reason, attempts: rec.Attempts, status: res.Status, response: res.Excerpt, problem: errText(res.Err),
			}).ending
		}
		switch mv.class {
		case dedup.WaitDeferred:
			rec.Deferred++
		case dedup.WaitUnknown:
			rec.Unknown++
		}
		if q.rest(hold, mv.jittered()) != nil {
			return ending{fate: fateReturned}
		}
	}
}
