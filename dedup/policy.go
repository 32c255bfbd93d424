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
