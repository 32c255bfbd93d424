package dedup

import "log/slog"

// redacted is what a Secret shows.
const redacted = "***"

// Secret is a text that no log line, error or encoder shows. An empty secret
// shows as empty, so that "not set" stays visible.
type Secret string

// Reveal returns the text itself, for the one place that must send it.
func (s Secret) Reveal() string { return string(s) }

// String returns "***", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString covers %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText covers encoding/json and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue covers log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
