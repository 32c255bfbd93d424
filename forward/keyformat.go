package forward

import (
	"fmt"
	"strings"
)

// KeyFormat is how the Idempotency-Key is written.
type KeyFormat string

const (
	// KeyPlain writes the key as it is.
	KeyPlain KeyFormat = "plain"
	// KeyQuoted writes it as a string of a structured field, as the IETF's draft has it
	// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/, RFC 8941, 3.3.3).
	KeyQuoted KeyFormat = "quoted"
)

func (f KeyFormat) validate() error {
	switch f {
	case KeyPlain, KeyQuoted, "":
		return nil
	}
	return fmt.Errorf("FORWARD_IDEMPOTENCY_KEY is %q: set plain or quoted", string(f))
}

// write returns the header's value for a key that is legal in HTTP; "" stays "".
func (f KeyFormat) write(key string) string {
	if f != KeyQuoted || key == "" {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
