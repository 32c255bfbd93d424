package dedup

import "fmt"

// Reason is why a message was dead-lettered. It is a log value, a metric label
// and a header of the dead letter. The numbers are stored in records: never
// change one.
type Reason uint8

// The reasons.
const (
	ReasonRejected          Reason = 1 // the service rejected the message
	ReasonAttemptsExhausted Reason = 2 // RETRY_MAX_ATTEMPTS was reached
	ReasonMaxAge            Reason = 3 // RETRY_MAX_AGE was reached
	ReasonUnknownOutcome    Reason = 4 // nobody knows whether the work was done
	ReasonMissingID         Reason = 5 // the message has no ID
	ReasonConflict          Reason = 6 // the ID was seen with another payload
)

// Reasons lists every reason, in order.
func Reasons() []Reason {
	return []Reason{
		ReasonRejected, ReasonAttemptsExhausted, ReasonMaxAge,
		ReasonUnknownOutcome, ReasonMissingID, ReasonConflict,
	}
}

// String returns the reason as headers, logs and metrics show it. A number
// from a newer version shows as "reason-N".
func (r Reason) String() string {
	switch r {
	case ReasonRejected:
		return "rejected"
	case ReasonAttemptsExhausted:
		return "attempts-exhausted"
	case ReasonMaxAge:
		return "max-age"
	case ReasonUnknownOutcome:
		return "unknown-outcome"
	case ReasonMissingID:
		return "missing-id"
	case ReasonConflict:
		return "conflict"
	}
	return fmt.Sprintf("reason-%d", uint8(r))
}

// ParseReason reads what String writes.
func ParseReason(text string) (Reason, bool) {
	for _, r := range Reasons() {
		if r.String() == text {
			return r, true
		}
	}
	return 0, false
}
