package dedup

import (
	"context"
	"fmt"
	"time"
)

// probeRetention is how long the record of a probe lives that was cut off half way.
const probeRetention = time.Minute

// Probe tells whether the store takes claims and successes: it claims a record under the key, and releases it, which
// DEDUP_WAIT_REPLICAS must have. A ping would say yes for a server that is a replica, whose memory is full, or that
// denies the script to this user. Give each process a key of its own, under the prefix of its queues.
func (s *Store) Probe(ctx context.Context, key string) error {
	claim := operation{
		word: wordClaim, key: key, token: NewToken(),
		lease: milliseconds(probeRetention), deadline: milliseconds(probeRetention), retention: retention(probeRetention),
	}
	answer, err := s.do(ctx, claim, time.Now())
	if err != nil {
		return fmt.Errorf("probe store: %w", err)
	}
	if verdict, ok := answer.verdict(); !ok || verdict != Claimed {
		return nil // somebody else's record: the store answers, and nothing is ours to release
	}
	if _, err := s.settle(ctx, operation{word: wordRelease, key: key, token: claim.token, retention: claim.retention, confirm: true}); err != nil {
		return fmt.Errorf("probe store: %w", err)
	}
	return nil
}
