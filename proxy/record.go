package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// recordTimeout bounds one try to write a result, which goes on when the POSTs are cut off, so that what they ended in is
// written down.
const recordTimeout = 2 * time.Second

// patience hands out contexts that end after recordTimeout, or up to a tenth later: all results that are written at about the
// same time have one, and its timer, in common. Safe for concurrent use; the zero value is ready.
type patience struct {
	mu   sync.Mutex
	ends time.Time       // of the latest
	ctx  context.Context //nolint:containedctx // it is what is handed out
}

func (p *patience) context() context.Context {
	const shared = recordTimeout / 10
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.ends.Sub(now) < recordTimeout {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(recordTimeout+shared, func() { cancel(context.DeadlineExceeded) })
		p.ctx, p.ends = ctx, now.Add(recordTimeout+shared)
	}
	return p.ctx
}

// record writes a result under the claim, trying until the store has answered or work has ended.
func (q *queue) record(work context.Context, write func(context.Context) (dedup.Settlement, error)) (dedup.Settlement, error) {
	pauses := backoff{first: pollFirst, last: pollLast}
	for {
		result, err := write(q.patience.context())
		if err == nil || errors.Is(err, dedup.ErrForeignRecord) {
			return result, err
		}
		q.storeFailed(err)
		if sleep(work, pauses.pause()) != nil {
			return write(q.patience.context()) // the last word
		}
	}
}

// recordSuccess writes `done`. It must be written before the ack: a crash between the two then costs a duplicate that
// is recognised, not one that is executed. When it cannot be written while the lease lives, the delivery is
// acknowledged all the same, since the work is done and a redelivery would do it again; writing goes on as long as
// the process lives.
func (q *queue) recordSuccess(work context.Context, m *message, claim dedup.Claim, res forward.Result) ending {
	defer claim.Lease.Drop()
	pauses := backoff{first: pollFirst, last: pollLast}
	acked := false
	for {
		err := q.store.Succeed(q.patience.context(), m.key, res.Status, m.fingerprint, q.cfg.Dedup.Retention)
		if err == nil {
			break
		}
		q.storeFailed(err)
		stopped := errors.Is(err, dedup.ErrForeignRecord) || sleep(work, pauses.pause()) != nil
		if !acked && (stopped || claim.Lease.Left() <= 0) {
			acked = true
			q.metrics.unrecorded.Inc()
			q.log.Error("the success of a message could not be recorded: it is acknowledged, and recording goes on; a copy that comes meanwhile would be executed again",
				"id", m.logID(), "error", err.Error())
			m.session.settle(m.DeliveryTag, settleAck)
			m.place.leave() // it is settled: those behind it need not wait for the store
		}
		if stopped {
			return ending{fate: fateUnrecorded}
		}
	}
	q.wellDone()
	if acked {
		return ending{fate: fateUnrecorded}
	}
	return ending{fate: fateDone}
}

// release gives a claim back as it was found: nothing was sent under it.
func (q *queue) release(work context.Context, l *dedup.Lease) {
	if _, err := q.record(work, func(ctx context.Context) (dedup.Settlement, error) { return q.store.Release(ctx, l) }); err != nil {
		q.log.Warn("a claim could not be given back; its next attempt will be flagged as of unknown outcome", "error", err.Error())
	}
}

// abandon gives back what a claim took that is no longer wanted: the lease held, if its reply came. claimErr is the
// claim's error: its reply was lost, and it may have been granted.
func (q *queue) abandon(work context.Context, m *message, req dedup.ClaimRequest, held *dedup.Lease, claimErr error) {
	switch {
	case held != nil:
		q.release(work, held)
	case claimErr != nil:
		if _, err := q.store.Abandon(q.patience.context(), req); err != nil {
			q.log.Warn("a claim whose reply was lost could not be given back", "id", m.logID(), "error", err.Error())
		}
	}
}

// storeFailed closes the store's gate, unless the error is about one key alone.
func (q *queue) storeFailed(err error) {
	if !errors.Is(err, dedup.ErrForeignRecord) {
		q.storeGate.close(err)
	}
}
