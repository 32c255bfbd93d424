package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// underLease is a context that ends with work, and with errLeaseLost when the lease is lost.
func underLease(work context.Context, lease *dedup.Lease) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(work)
	lease.AfterLost(func() { cancel(errLeaseLost) })
	return ctx, func() {
		lease.AfterLost(nil)
		cancel(nil)
	}
}

// post sends the request. It is cut off when the lease is lost or work ends.
func (q *queue) post(work context.Context, m *message, claim dedup.Claim) forward.Result {
	// An attempt without a claim, while the store was down, is known here alone.
	unknown := claim.Record.EverUnknown || m.unclaimed.Unknown > 0
	r, err := q.request(m, claim.Record.Attempts, unknown, q.cfg.Forward.Timeout)
	if err != nil { // nor will there ever be anything to send
		return forward.Result{Outcome: forward.Reject, Err: err}
	}
	r.Permit = func() error { return q.permit(claim.Lease) }
	ctx, release := underLease(work, claim.Lease)
	defer release()
	return q.send(ctx, r)
}

// send makes one request and measures it.
func (q *queue) send(ctx context.Context, r *forward.Request) forward.Result {
	q.inFlight.Add(1)
	began := time.Now()
	res := q.service.Post(ctx, r)
	q.metrics.requests[res.Outcome].Observe(time.Since(began).Seconds())
	q.inFlight.Add(-1)
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
