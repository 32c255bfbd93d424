package proxy

import (
	"context"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// lookUp asks the service what became of the requests of a message before it is sent again. cleared says that there was no
// work: the message is to be claimed again, with the same token, and sent. Otherwise t says how it goes on.
func (q *queue) lookUp(work, hold context.Context, m *message, claim dedup.Claim) (t turn, cleared bool) {
	finding, err := q.askService(work, m, claim.Lease)
	q.log.Debug("looked up", "id", m.logID(), "finding", finding.String(), "error", errText(err))
	switch finding {
	case forward.FoundDone:
		return over(q.recordSuccess(work, m, claim, forward.Result{Outcome: forward.Done})), false
	case forward.NeverDone:
		result, err := q.record(work, func(ctx context.Context) (dedup.Settlement, error) { return q.store.Clear(ctx, claim.Lease) })
		if t, stop := q.notApplied(result, err); stop {
			claim.Lease.Drop()
			return t, false
		}
		return turn{}, true
	}
	if claim.Now.Sub(claim.Record.FirstClaimed) > q.cfg.Retry.MaxAge {
		return q.bury(work, hold, m, claim, dedup.ReasonUnknownOutcome, nil), false
	}
	m.lookups++
	pause := q.cfg.Retry.Backoff.step(m.lookups)
	if hold.Err() == nil {
		q.log.Warn("the outcome of a request is unknown, and the service does not say what became of it: it is asked again later",
			"id", m.logID(), "error", errText(err), "pause", pause.String())
	}
	q.release(work, claim.Lease)
	return later(jitter(pause), pause), false
}

// askService looks up one message, for as long as the claim is held.
func (q *queue) askService(work context.Context, m *message, lease *dedup.Lease) (forward.Finding, error) {
	ctx, cancel := context.WithCancelCause(work)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-lease.Lost():
			cancel(errLeaseLost)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-watched }()
	return q.service.Lookup(ctx, m.id.Value)
}

// probeService asks whether the service can take requests, and whether its lookups can be trusted.
func probeService(service *forward.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := service.Probe(ctx); err != nil {
			return err
		}
		return service.ProbeLookup(ctx, "rabbitonce-"+dedup.NewDeadID())
	}
}
