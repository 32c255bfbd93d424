package check

import "time"

// History is what was written down in a run. All times are of one clock.
type History struct {
	Queues       map[string]Queue
	Publications []Publication
	Requests     []Request // in the order of Sent
	Processes    []Process
	Faults       []Fault
	Writes       []Write // in the store's order
	Letters      []Letter
	Left         []Left
	End          time.Time // when the journals were closed
}

// Queue is how the program was set up for a queue.
type Queue struct {
	Policy      Policy
	Timeout     time.Duration // FORWARD_TIMEOUT
	Lease       time.Duration // DEDUP_LEASE
	MaxAttempts int           // RETRY_MAX_ATTEMPTS
}

// Policy is FORWARD_ON_UNKNOWN.
type Policy string

const (
	Retry      Policy = "retry"
	DeadLetter Policy = "deadletter"
	Lookup     Policy = "lookup"
)

// ID is a message ID in a queue: what a claim is about.
type ID struct {
	Queue, Value string
}

// Destiny is what the service has in mind with an ID.
type Destiny uint8

const (
	ToBeDone     Destiny = iota // the service does it, sooner or later
	ToBeRejected                // the service answers 400
	ToExhaust                   // the service fails each time
)

// Publication is one message that was sent to its queue. An ID may have many: duplicates, and copies with another payload.
type Publication struct {
	ID        ID
	At        time.Time
	Confirmed bool
	Payload   Payload
	Destiny   Destiny
	Conflict  bool // not the first payload of its ID
}

// Payload is what a dead letter must have kept: a digest of the body, and one of the properties and headers.
type Payload struct {
	Body, Properties string
}

// Request is one request of the program. Sent is when its first byte was on the wire, before any fault could touch it; the
// service may never have seen it.
type Request struct {
	ID      ID
	Process string
	Attempt int  // Delivery-Attempt
	Unknown bool // Delivery-Outcome-Unknown
	Sent    time.Time

	Began  time.Time // zero: it never reached the service
	Ended  time.Time // when the service had ended its work, before an answer left; zero: it still worked at the End, or Began is zero
	Worked bool      // the work was done, once, at Ended
	Status int       // answered; 0: no answer, or a broken one
}

// Arrived tells whether the service has seen the request.
func (r *Request) Arrived() bool { return !r.Began.IsZero() }

// Span is a time; a To of zero is the end of the run.
type Span struct {
	From, To time.Time
}

// Process is one run of the program.
type Process struct {
	Name   string
	Life   Span
	Killed bool   // with SIGKILL; else it ended by SIGTERM, or lives
	Stops  []Span // SIGSTOP to SIGCONT
}

// Part is what a fault hits.
type Part string

const (
	PartProcess Part = "process"
	PartBroker  Part = "broker" // the broker, or the network to it
	PartStore   Part = "store"
	PartService Part = "service"
)

// Fault is one that was injected.
type Fault struct {
	Kind     string
	Part     Part
	Process  string // only that one; empty: all
	Span     Span
	InFlight int // requests under way that it hit
}

// State is a record's.
type State string

const (
	Absent     State = "absent" // the record was deleted
	Processing State = "processing"
	Waiting    State = "waiting"
	Done       State = "done"
	Dead       State = "dead"
)

// Write is one change of a record, from the store's own log.
type Write struct {
	ID       ID
	At       time.Time // by the store; zero when State is Absent
	State    State
	Token    string // Processing: of the claim
	Attempts int
	Unknown  bool // an outcome was ever unknown
}

// Letter is one dead letter.
type Letter struct {
	ID       ID // of the queue that it comes from
	Reason   string
	Attempts int
	Payload  Payload
}

// Left is a message that lies in a source queue or a wait queue at the End.
type Left struct {
	ID ID
	In string
}
