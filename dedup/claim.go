package dedup

import (
	"context"
	"fmt"
	"time"
)

// ClaimRequest asks to work on an ID.
type ClaimRequest struct {
	Key   string // see Key
	Token Token  // of this claim and its repeats alone, see NewToken

	Fingerprint Fingerprint
	Compare     bool // another payload's record is a conflict

	Lease     time.Duration // how long the claim holds without being renewed
	Deadline  time.Duration // from now: when the request will have ended for certain
	Retention time.Duration // how long the record lives after each change

	// DeadID is the dead-id that a dead letter carries; it opens the record
	// that has the same. Anything that is no dead-id counts as none.
	DeadID string
}

// Claim is the answer to a ClaimRequest.
type Claim struct {
	Verdict Verdict
	Record  Record        // as it now is
	Now     time.Time     // the store's clock; the record's times are its own
	Wait    time.Duration // Busy, Waiting: ask again after this
	Lease   *Lease        // Claimed: renewed from now on
}

// Claim asks for the ID. An error is never a verdict: the claim may have been
// granted. Repeat it with the same token, which is also how to make sure,
// right before the request, that a lease still holds; the same Lease is
// returned, with its times renewed. After a failed Wait, Bury or Release do not
// claim with that token again: the failed call may take effect later, and would
// take the new claim away. Take a new token.
//
// A cancelled context leaves the claim in doubt as any other error does, so
// prefer one that outlives an orderly shutdown.
func (s *Store) Claim(ctx context.Context, r ClaimRequest) (Claim, error) {
	op := operation{
		word: wordClaim, key: r.Key, token: r.Token,
		fingerprint: r.Fingerprint, compare: r.Compare,
		lease: milliseconds(r.Lease), deadline: milliseconds(r.Deadline), retention: retention(r.Retention),
	}
	op.deadID, op.hasDeadID = parseDeadID(r.DeadID)

	sent := time.Now()
	answer, err := s.do(ctx, op, sent)
	s.metrics.claimSeconds.Observe(time.Since(sent).Seconds())
	if err != nil {
		return Claim{}, err
	}
	verdict, ok := answer.verdict()
	if !ok || answer.record == nil {
		return Claim{}, fmt.Errorf("claim: the store answered %q", answer.letter)
	}
	claim := Claim{Verdict: verdict, Record: answer.record.export(), Now: time.UnixMilli(answer.now)}
	switch verdict {
	case Claimed:
		claim.Lease = s.keeper.claimed(&op, sent, r.Lease, r.Deadline)
	case Busy:
		claim.Wait = time.UnixMilli(answer.record.busyUntil()).Sub(claim.Now)
	case Waiting:
		claim.Wait = claim.Record.NotBefore.Sub(claim.Now)
	}
	return claim, nil
}
