package dedup

import (
	"crypto/rand"
	"encoding/hex"
)

// Token is the name of one claim, unique for ever. Only the repeats of the
// same claim share it: that is how a claim whose reply was lost is recognised
// as one's own instead of being mistaken for a duplicate.
type Token [16]byte

// NewToken returns a token that no claim has had: 128 random bits, so that
// neither a restart nor a cloned machine can bring one back.
func NewToken() Token {
	var t Token
	rand.Read(t[:]) // never fails, see crypto/rand
	return t
}

// deadID marks one dead letter and the record it left behind.
type deadID [8]byte

// NewDeadID returns a fresh dead-id: 16 hexadecimal digits.
func NewDeadID() string {
	var id deadID
	rand.Read(id[:])
	return id.String()
}

func (id deadID) String() string { return hex.EncodeToString(id[:]) }

// parseDeadID reads a dead-id in the one form that String writes.
func parseDeadID(text string) (deadID, bool) {
	var id deadID
	if len(text) != 2*len(id) {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil || id.String() != text {
		return deadID{}, false
	}
	return id, true
}
