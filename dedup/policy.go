package dedup

// MissingPolicy is what happens to a message in which no ID was found.
type MissingPolicy string

// The values of DEDUP_ON_MISSING_ID.
const (
	MissingDeadletter MissingPolicy = "deadletter" // to the dead letters, reason missing-id
	MissingHash       MissingPolicy = "hash"       // identified by its content, see HashID
	MissingForward    MissingPolicy = "forward"    // forwarded without a claim
)

func (p MissingPolicy) known() bool {
	return p == MissingDeadletter || p == MissingHash || p == MissingForward
}

// ConflictPolicy is what happens to a message whose ID has a record made by
// another payload.
type ConflictPolicy string

// The values of DEDUP_ON_CONFLICT.
const (
	ConflictDeadletter ConflictPolicy = "deadletter" // to the dead letters, reason conflict
	ConflictDuplicate  ConflictPolicy = "duplicate"  // payloads are not compared
)

func (p ConflictPolicy) known() bool {
	return p == ConflictDeadletter || p == ConflictDuplicate
}

// Mode says whether verdicts count.
type Mode string

// The values of DEDUP_MODE.
const (
	ModeEnforce Mode = "enforce"
	ModeObserve Mode = "observe" // every message is forwarded, verdicts are counted
)

// known also takes the zero value, which enforces.
func (m Mode) known() bool { return m == "" || m == ModeEnforce || m == ModeObserve }

// StoreDownPolicy is what happens while the store does not answer.
type StoreDownPolicy string

// The values of DEDUP_ON_STORE_DOWN.
const (
	StoreDownWait    StoreDownPolicy = "wait"    // no claim, no request
	StoreDownForward StoreDownPolicy = "forward" // requests without a claim, flagged
)

// known also takes the zero value, which waits.
func (p StoreDownPolicy) known() bool {
	return p == "" || p == StoreDownWait || p == StoreDownForward
}
