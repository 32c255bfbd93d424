package proxy

import (
	"context"
	"errors"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// lookUp asks the service what became of the requests of a message before it is sent again. cleared says that there was no
// work: the message is to be claimed again, with the same token, and sent. Otherwise t says how it goes on, and the slot is
// free.
func (q *queue) lookUp(work, hold context.Context, m *message, claim dedup.Claim, slot *heldSlot) (t turn, cleared bool) {
	finding, err := q.askService(work, m, claim.Lease)
	q.log.Debug("looked up", "id", m.logID(), "finding", finding.String(), "error", errText(err))
	if finding == forward.NeverDone {
		result, err := q.store.Clear(q.patience.context(), claim.Lease)
		if err == nil && result == dedup.Applied {
			return turn{}, true
		}
		slot.free()
		return q.notCleared(work, claim, result, err), false
	}
	slot.free()
	ended := hold.Err() != nil || work.Err() != nil || claim.Lease.Left() <= 0
	switch {
	case finding == forward.FoundDone:
		return over(q.recordSuccess(work, m, claim, forward.Result{Outcome: forward.Done})), false
	case finding == forward.NoService && !ended:
		q.serviceGate.close(err)
		q.release(work, claim.Lease)
		return again(0), false
	case finding == forward.NotKnown && !ended && claim.Now.Sub(claim.Record.FirstClaimed) > q.cfg.Retry.MaxAge:
		return q.bury(work, hold, m, claim, dedup.ReasonUnknownOutcome, nil), false
	}
	m.lookups++
	pause := q.cfg.Retry.Backoff.step(m.lookups)
	if !ended {
		q.log.Warn("the outcome of a request is unknown, and the service does not say what became of it: it is asked again later",
			"id", m.logID(), "error", errText(err), "pause", pause.String())
	}
	q.release(work, claim.Lease)
	return later(jitter(pause), pause), false
}

// notCleared is how it goes on when it could not be written that there was no work.
func (q *queue) notCleared(work context.Context, claim dedup.Claim, result dedup.Settlement, err error) turn {
	if err != nil && !errors.Is(err, dedup.ErrForeignRecord) {
		q.storeFailed(err)
		q.release(work, claim.Lease) // also if it was written after all: this brings back what the claim found
		return again(0)
	}
	defer claim.Lease.Drop()
	t, _ := q.notApplied(result, err)
	return t
}

// askService looks up one message, for as long as the claim is held.
func (q *queue) askService(work context.Context, m *message, lease *dedup.Lease) (forward.Finding, error) {
	ctx, release := underLease(work, lease)
	defer release()
	return q.service.Lookup(ctx, m.id.Value)
}

// probeService asks whether the service can take requests, and whether its lookups can be trusted.
func probeService(service *forward.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		connecting, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		if err := service.Probe(connecting); err != nil {
			return err
		}
		return service.ProbeLookup(ctx, "rabbitonce-"+dedup.NewDeadID())
	}
}
