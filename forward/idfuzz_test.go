package forward

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

// FuzzIdempotencyKey: an ID becomes a header value that HTTP carries and that a
// service can store, and percent-decoding gives the ID back, byte for byte. Only
// an ID that is too long is replaced by its digest.
func FuzzIdempotencyKey(f *testing.F) {
	for _, id := range []string{
		"", " ", "order-1", "5b1c9f0e-8d6a-4a57-9d0e-0c7b8e5f3a21", "Zürich 100%", "a+b%20c", "\x00\xff\r\n", `"quoted"`, "sha256:short",
		strings.Repeat("x", maxKey), strings.Repeat("x", maxKey+1), strings.Repeat("é", maxKey/6), strings.Repeat("é", maxKey/6+1),
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := idempotencyKey(id)
		switch {
		case id == "" && key == "":
			return // sent without a key
		case !isLegalValue(key), len(key) > maxKey:
			t.Fatalf("%q becomes %q, which HTTP or a service cannot take", id, key)
		case idempotencyKey(id) != key:
			t.Fatalf("%q does not always become %q", id, key)
		}
		back, err := url.PathUnescape(key) // plain percent-decoding: + stays +
		if err == nil && back == id {
			return
		}
		sum := sha256.Sum256([]byte(id))
		if len(encodeValue(id)) <= maxKey || key != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%q becomes %q and comes back as %q, %v", id, key, back, err)
		}
	})
}
