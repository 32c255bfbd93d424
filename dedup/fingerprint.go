package dedup

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Fingerprint tells two payloads apart: the body's bytes and nothing else, so
// that a copy with other headers is still a copy. It has 48 bits. It guards
// against mistakes, not against an attacker.
type Fingerprint uint64

const fingerprintMask = 1<<48 - 1

// FingerprintOf returns 48 bits of the body's xxHash64.
func FingerprintOf(body []byte) Fingerprint {
	return Fingerprint(xxhash.Sum64(body)) & fingerprintMask
}

// bytes returns the six bytes that are stored.
func (f Fingerprint) bytes() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(f))[2:]
}
