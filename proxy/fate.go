package proxy

// fate is how a delivery's stay here ended: log value and metric label.
type fate uint8

const (
	fateDone       fate = iota // executed, recorded, acknowledged
	fateUnrecorded             // executed and acknowledged, but the success could not be recorded in time
	fateDuplicate              // done before: acknowledged without a POST
	fateDead                   // in the dead letters, acknowledged
	fateParked                 // moved to a wait queue, acknowledged
	fateReturned               // given back to the queue, or its session ended
)

func fates() []fate {
	return []fate{fateDone, fateUnrecorded, fateDuplicate, fateDead, fateParked, fateReturned}
}

func (f fate) String() string {
	return [...]string{"done", "unrecorded", "duplicate", "dead_letter", "parked", "returned"}[f]
}

// duplicate is how a copy met its message: metric label.
type duplicate uint8

const (
	duplicateDone     duplicate = iota // done before
	duplicateBusy                      // being worked on
	duplicateWaiting                   // waiting for its next attempt
	duplicateDead                      // dead-lettered before
	duplicateConflict                  // same ID, other payload
)

func duplicates() []duplicate {
	return []duplicate{duplicateDone, duplicateBusy, duplicateWaiting, duplicateDead, duplicateConflict}
}

func (d duplicate) String() string {
	return [...]string{"done", "busy", "waiting", "dead", "conflict"}[d]
}

// ending is a fate and what remains to be done for it.
type ending struct {
	fate   fate
	clear  string    // fateDead: dead-id of a record to delete once the broker has the settlement; "" keeps the record
	reject *obituary // fateDead: the delivery is to be rejected for this; nil: its letter was published
}
