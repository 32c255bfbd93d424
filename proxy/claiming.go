package proxy

import (
	"context"
	"errors"

	"rabbitonce/dedup"
)

// claimRequest is a claim with a token of its own.
func (q *queue) claimRequest(m *message) dedup.ClaimRequest {
	return dedup.ClaimRequest{
		Key: m.key, Token: dedup.NewToken(), Fingerprint: m.fingerprint, DeadID: m.deadID(),
		Compare:   q.cfg.Dedup.OnConflict == dedup.ConflictDeadletter,
		Lease:     q.cfg.Dedup.Lease,
		Deadline:  q.cfg.Forward.Timeout + claimSlack,
		Retention: q.cfg.Dedup.Retention,
	}
}

// claim claims the message and decides what follows. It asks until the store answers, always with the same token, so
// that a claim whose reply was lost is recognised as ours. A granted claim that came too slowly to POST under it is
// claimed again. held is the lease of an earlier claim with this token; nil is none. The error is errUnclaimed when the store is down and the queue goes on without it,
// dedup.ErrForeignRecord when the key is spoilt, else it means that hold ended first; what was claimed by then is
// given back.
func (q *queue) claim(work, hold context.Context, m *message, req dedup.ClaimRequest, held *dedup.Lease) (dedup.Claim, move, error) {
	if q.needsNoStore() && !q.storeGate.isOpen() {
		drop(held)
		return dedup.Claim{}, move{}, errUnclaimed
	}
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
		if mv.step != stepPost || q.fresh(claim.Lease) { // a lookup comes before another claim
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
