package dedup

import "context"

// Forget deletes the record that Look saw, if it still is the same, byte for byte: a claim, a renewal or a result that
// came in between keeps it, and forgotten is false. Look again then. It knows no other condition: what may be
// forgotten is for the caller to decide. After it the ID is as one that was never seen.
//
// Whoever holds a record that was forgotten loses its lease at its next renewal; a success is recorded all the same.
func (s *Store) Forget(ctx context.Context, seen Sighting) (forgotten bool, err error) {
	settlement, err := s.settle(ctx, operation{word: wordForget, key: seen.Key, expected: seen.value})
	return settlement == Applied, err
}
