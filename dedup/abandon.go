package dedup

import "context"

// Abandon releases what a claim may have been granted whose reply was lost and that is not repeated. It changes
// nothing when the claim was not granted; a claim that is still on its way can be granted afterwards, and then runs
// out.
func (s *Store) Abandon(ctx context.Context, r ClaimRequest) (Settlement, error) {
	return s.settle(ctx, operation{word: wordRelease, key: r.Key, token: r.Token, retention: retention(r.Retention)})
}
