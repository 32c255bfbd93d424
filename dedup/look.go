package dedup

import (
	"context"
	"fmt"
	"time"
)

// Sighting is what Look saw under a key.
type Sighting struct {
	Key    string
	Found  bool
	Record Record        // when Found
	Now    time.Time     // the store's clock, which the record's times are of
	Left   time.Duration // until the key expires; 0 when the store does not let this user ask (+pttl)

	value string // the stored form, byte for byte, for Forget
}

// sight is a Sighting as a backend gives it. Times are milliseconds.
type sight struct {
	value string
	found bool
	now   int64
	left  int64 // 0: not told
}

// Look returns the record of a key with what a person wants to know of it. It changes nothing. A key that holds no
// record is ErrForeignRecord.
func (s *Store) Look(ctx context.Context, key string) (Sighting, error) {
	seen, err := s.backend.look(ctx, key)
	if err == nil && seen.found {
		var r *record
		if r, err = parseRecord(seen.value, seen.now); err == nil {
			return Sighting{
				Key: key, Found: true, Record: r.export(), Now: time.UnixMilli(seen.now),
				Left: time.Duration(seen.left) * time.Millisecond, value: seen.value,
			}, nil
		}
	}
	switch {
	case isForeign(err):
		return Sighting{}, fmt.Errorf("look: key %q: %w: %w", key, ErrForeignRecord, err)
	case err != nil:
		return Sighting{}, fmt.Errorf("ask the store (REDIS_URL) for the record: %w", err)
	}
	return Sighting{Key: key, Now: time.UnixMilli(seen.now)}, nil
}

// BusyUntil is when a processing record may be taken over: when the lease of its holder is over, and the request of a
// holder who may be gone has ended for certain.
func (r Record) BusyUntil() time.Time {
	if r.Deadline.After(r.LeaseUntil) {
		return r.Deadline
	}
	return r.LeaseUntil
}

// Live tells whether somebody may be at work on the ID: the next claim would be told busy.
func (s Sighting) Live() bool {
	return s.Found && s.Record.State == StateProcessing && s.Now.Before(s.Record.BusyUntil())
}
