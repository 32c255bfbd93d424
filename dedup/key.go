package dedup

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxPlainID is the longest ID, in bytes, that is stored as it is.
const maxPlainID = 200

// Key names the record of one ID. No two different (prefix, consumer, ID)
// share a key, short of a SHA-256 collision:
//
//	key       = escaped(prefix) ":" escaped(consumer) [ from ] [ hashed ] ":" id
//	from      = "%from=" escaped(source)      ; a fallback source found the ID
//	hashed    = "%sha256"                     ; the ID is over 200 bytes long
//	id        = the ID's bytes, or, after %sha256, their SHA-256 in hex
//	escaped   = "%" written "%25" and ":" written "%3A", nothing else changed
//
// Escaped text holds no ":" and no "%" but in %25 and %3A. So the first two
// ":" split the key, the first "%from=" or "%sha256" ends the consumer, and
// what follows the second ":" may hold anything: an ID that looks like a mark
// is still an ID, because marks stand before that ":".
func Key(prefix, consumer string, id ID) string {
	var key strings.Builder
	key.Grow(len(prefix) + len(consumer) + len(id.Source) + min(len(id.Value), maxPlainID) + 24)
	key.WriteString(escapeKeyPart(prefix))
	key.WriteByte(':')
	key.WriteString(escapeKeyPart(consumer))
	if id.Source != "" {
		key.WriteString("%from=")
		key.WriteString(escapeKeyPart(id.Source))
	}
	if len(id.Value) <= maxPlainID {
		key.WriteByte(':')
		key.WriteString(id.Value)
		return key.String()
	}
	sum := sha256.Sum256([]byte(id.Value))
	key.WriteString("%sha256:")
	key.WriteString(hex.EncodeToString(sum[:]))
	return key.String()
}

func escapeKeyPart(part string) string {
	if !strings.ContainsAny(part, "%:") {
		return part
	}
	return strings.NewReplacer("%", "%25", ":", "%3A").Replace(part)
}
