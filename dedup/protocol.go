package dedup

import "math"

// letter is the first byte of an answer, as scripts/protocol.lua gives it.
type letter byte

const (
	letterClaimed  letter = 'c'
	letterDone     letter = 'd' // both as a verdict and as a settlement
	letterBusy     letter = 'b'
	letterWaiting  letter = 'w'
	letterDead     letter = 'x'
	letterConflict letter = 'k'
	letterApplied  letter = 'a'
	letterNotOurs  letter = 'n'
)

// decision is what an operation does to a record.
type decision struct {
	letter letter
	record *record // as it now is; nil: there is none
	write  bool    // store record, or delete the key when it is nil
}

// decide is the claim protocol: what op does to the record found (nil: none)
// at the time now. It is pure, changes neither argument, and follows
// scripts/protocol.lua rule by rule; the reasons stand there.
func decide(found *record, op *operation, now int64) decision {
	switch op.word {
	case wordClaim:
		return decideClaim(found, op, now)
	case wordSucceed:
		return decideSucceed(found, op, now)
	case wordUndead:
		if found != nil && found.state == StateDead && !found.everUnknown && found.deadID == op.deadID {
			return decision{letter: letterApplied, write: true}
		}
		return notOurs(found)
	case wordForget:
		if found != nil && string(appendRecord(nil, found)) == op.expected {
			return decision{letter: letterApplied, write: true}
		}
		return notOurs(found)
	}
	if op.word == wordBury && found != nil && found.state == StateDead && found.deadID == op.deadID {
		return unchanged(letterApplied, found) // a repeat
	}
	if found == nil || found.state != StateProcessing || found.token != op.token {
		return notOurs(found)
	}
	switch op.word {
	case wordRenew:
		renewed := *found
		renewed.leaseUntil = now + op.lease
		return changed(letterApplied, &renewed)
	case wordClear:
		cleared := *found
		cleared.everUnknown, cleared.unknowns = false, 0
		return changed(letterApplied, &cleared)
	case wordWait:
		return decideWait(found, op, now)
	case wordBury:
		dead := found.head(StateDead)
		dead.reason, dead.deadID, dead.at, dead.notBefore = op.reason, op.deadID, now, now
		if op.unknown {
			dead.countUnknown()
			dead.notBefore = max(now, found.deadline)
		}
		return changed(letterApplied, dead)
	default:
		return decideRelease(found)
	}
}

func decideClaim(found *record, op *operation, now int64) decision {
	switch {
	case found == nil:
		fresh := &record{attempts: 1, first: now, undo: undoDelete}
		return changed(letterClaimed, fresh.claimedBy(op, now))
	case found.state == StateProcessing && found.token == op.token:
		again := *found
		again.leaseUntil, again.deadline = now+op.lease, now+op.deadline
		return changed(letterClaimed, &again)
	case op.compare && found.fingerprint != op.fingerprint:
		return unchanged(letterConflict, found)
	}
	taken := found.head(StateProcessing)
	switch found.state {
	case StateDone:
		return unchanged(letterDone, found)
	case StateDead:
		if !op.hasDeadID || op.deadID != found.deadID {
			return unchanged(letterDead, found)
		}
		if now < found.notBefore {
			return unchanged(letterWaiting, found)
		}
		taken.attempts, taken.deferred, taken.unknowns, taken.first = 0, 0, 0, now
	case StateProcessing:
		if now < found.busyUntil() {
			return unchanged(letterBusy, found)
		}
		taken.countUnknown()
	case StateWaiting:
		if now < found.notBefore {
			return unchanged(letterWaiting, found)
		}
	}
	taken.attempts = more(taken.attempts)
	taken.undo, taken.previous = undoRestore, found.stripped()
	return changed(letterClaimed, taken.claimedBy(op, now))
}

func decideSucceed(found *record, op *operation, now int64) decision {
	var done *record
	switch {
	case found == nil:
		done = &record{state: StateDone, attempts: 1, first: now}
	case found.state == StateDone:
		return changed(letterDone, found)
	default:
		done = found.head(StateDone)
	}
	done.fingerprint, done.at, done.status = op.fingerprint, now, op.status
	return changed(letterApplied, done)
}

func decideWait(found *record, op *operation, now int64) decision {
	waiting := found.head(StateWaiting)
	waiting.notBefore = now + op.delay
	switch op.class {
	case WaitDeferred:
		waiting.deferred = more(waiting.deferred)
	case WaitUnknown:
		waiting.countUnknown()
		waiting.notBefore = max(waiting.notBefore, found.deadline)
	}
	return changed(letterApplied, waiting)
}

func decideRelease(found *record) decision {
	switch found.undo {
	case undoDelete:
		return decision{letter: letterApplied, write: true}
	case undoRestore:
		return changed(letterApplied, found.previous)
	}
	return unchanged(letterNotOurs, found)
}

func changed(l letter, r *record) decision { return decision{letter: l, record: r, write: true} }

func unchanged(l letter, r *record) decision { return decision{letter: l, record: r} }

func notOurs(found *record) decision {
	if found != nil && found.state == StateDone {
		return unchanged(letterDone, found)
	}
	return unchanged(letterNotOurs, found)
}

// head returns a record of another state with what every state has.
func (r *record) head(state State) *record {
	return &record{
		state: state, everUnknown: r.everUnknown,
		attempts: r.attempts, deferred: r.deferred, unknowns: r.unknowns,
		first: r.first, fingerprint: r.fingerprint,
	}
}

func (r *record) claimedBy(op *operation, now int64) *record {
	r.state, r.token, r.fingerprint = StateProcessing, op.token, op.fingerprint
	r.leaseUntil, r.deadline = now+op.lease, now+op.deadline
	return r
}

func (r *record) countUnknown() {
	r.everUnknown = true
	if r.unknowns < math.MaxUint8 {
		r.unknowns++
	}
}

// more counts on, and stops at the end of the counter's width.
func more(counter uint16) uint16 {
	if counter == math.MaxUint16 {
		return counter
	}
	return counter + 1
}
