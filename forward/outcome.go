package forward

// Outcome says what became of a POST. It is a closed set: its text is the value
// in logs, the label of metrics and the first column of the table in
// docs/handlers.md. The zero value is Unknown, the verdict that assumes least.
type Outcome uint8

const (
	// Unknown means the service may or may not have done the work.
	Unknown Outcome = iota
	// Done means the service has done the work.
	Done
	// Defer means the service asks for the message again later.
	Defer
	// Fail means this attempt failed and another may succeed.
	Fail
	// Reject means the service will never take this message.
	Reject
	// Unreachable means that no byte of the request was sent.
	Unreachable
)

// Outcomes returns every outcome, in the order of the documentation.
func Outcomes() []Outcome {
	return []Outcome{Done, Defer, Fail, Reject, Unknown, Unreachable}
}

// String returns the outcome's name; a value outside the set reads as unknown.
func (o Outcome) String() string {
	switch o {
	case Done:
		return "done"
	case Defer:
		return "defer"
	case Fail:
		return "fail"
	case Reject:
		return "reject"
	case Unreachable:
		return "unreachable"
	default:
		return "unknown"
	}
}
