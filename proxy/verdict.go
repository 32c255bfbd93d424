package proxy

import (
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// The two decisions of a delivery's life are here, as pure functions: what to do with what the store said of a claim,
// and what to do with how a POST ended. The pipeline acts on them.

// step is what the pipeline does next with a delivery.
type step uint8

const (
	stepPost    step = iota // claimed: POST it
	stepAck                 // done already: acknowledge it
	stepWait                // somebody else has it, or it is not due: ask again later
	stepPublish             // dead already: publish the dead letter (again), then acknowledge
	stepBury                // write `dead`, publish the dead letter, then acknowledge
	stepRefuse              // same ID, other payload: publish a dead letter, acknowledge, leave the record alone
	stepRetry               // write `waiting`, try again later
	stepSucceed             // write `done`, then acknowledge
	stepRelease             // give the claim back: nothing was sent
	stepLookup              // claimed, and an outcome is unknown: ask the service before anything else
)

func (s step) String() string {
	return [...]string{"post", "ack", "wait", "publish", "bury", "refuse", "retry", "succeed", "release", "lookup"}[s]
}

// rules are the settings that the decisions depend on.
type rules struct {
	retry      RetryConfig
	onUnknown  forward.UnknownPolicy
	unknownMax int
}

// move is a decision: the step and what it needs.
type move struct {
	step   step
	reason dedup.Reason    // stepBury
	class  dedup.WaitClass // stepRetry
	pause  time.Duration   // stepRetry, before jitter
	asked  bool            // stepRetry: the service asked for this pause, it must not be shorter
}

// jittered is the pause as it is slept. A step of the ladder is shortened, by up to a fifth, so that a message that
// took a wait queue of that step is due when it comes back; what the service asked for is only ever lengthened.
func (m move) jittered() time.Duration {
	if m.asked {
		return m.pause + shortened(m.pause/5)
	}
	return shortened(m.pause)
}

// decideClaim says what follows from a claim. A claim that was granted can still end without a POST: when it is past
// the attempts a message has (a message that kills the sidecar must end), or when an earlier outcome is unknown and
// must not be repeated.
func decideClaim(c dedup.Claim, r rules) move {
	switch c.Verdict {
	case dedup.Claimed:
		return decideGranted(c.Record, r)
	case dedup.Done:
		return move{step: stepAck}
	case dedup.Dead:
		return move{step: stepPublish, reason: c.Record.Reason}
	case dedup.Conflict:
		return move{step: stepRefuse, reason: dedup.ReasonConflict}
	case dedup.Busy, dedup.Waiting:
		return move{step: stepWait}
	}
	return move{step: stepWait} // a verdict nobody knows never acks and never POSTs
}

func decideGranted(rec dedup.Record, r rules) move {
	switch {
	case rec.EverUnknown && r.onUnknown == forward.UnknownLookup:
		return move{step: stepLookup}
	case rec.Unknown > 0 && r.onUnknown == forward.UnknownDeadLetter, rec.Unknown > r.unknownMax:
		return move{step: stepBury, reason: dedup.ReasonUnknownOutcome}
	case counted(rec) > r.retry.MaxAttempts:
		return move{step: stepBury, reason: dedup.ReasonAttemptsExhausted}
	}
	return move{step: stepPost}
}

// counted is how many of a record's attempts count against RETRY_MAX_ATTEMPTS: deferred ones do not.
func counted(rec dedup.Record) int { return rec.Attempts - rec.Deferred }

// decideOutcome says what follows from how a POST ended. rec is the record as the claim left it, this attempt included;
// age is the time since the ID was first claimed.
func decideOutcome(res forward.Result, rec dedup.Record, age time.Duration, r rules) move {
	tooOld := age > r.retry.MaxAge
	switch res.Outcome {
	case forward.Done:
		return move{step: stepSucceed}
	case forward.Unreachable:
		return move{step: stepRelease}
	case forward.Reject:
		return move{step: stepBury, reason: dedup.ReasonRejected}
	case forward.Defer:
		if tooOld {
			return move{step: stepBury, reason: dedup.ReasonMaxAge}
		}
		if res.RetryAfter > 0 {
			return move{step: stepRetry, class: dedup.WaitDeferred, pause: res.RetryAfter, asked: true}
		}
		return move{step: stepRetry, class: dedup.WaitDeferred, pause: r.retry.Backoff.step(rec.Deferred + 1)}
	case forward.Fail:
		switch {
		case counted(rec) >= r.retry.MaxAttempts:
			return move{step: stepBury, reason: dedup.ReasonAttemptsExhausted}
		case tooOld:
			return move{step: stepBury, reason: dedup.ReasonMaxAge}
		}
		return move{step: stepRetry, class: dedup.WaitFailed, pause: r.retry.Backoff.step(counted(rec))}
	}
	return decideUnknown(rec, tooOld, r) // forward.Unknown, and any outcome nobody knows
}

func decideUnknown(rec dedup.Record, tooOld bool, r rules) move {
	if r.onUnknown == forward.UnknownLookup { // before the next request, whatever its number
		return move{step: stepRetry, class: dedup.WaitUnknown, pause: r.retry.Backoff.step(counted(rec))}
	}
	spent := rec.Unknown+1 > r.unknownMax || counted(rec) >= r.retry.MaxAttempts
	if r.onUnknown == forward.UnknownDeadLetter || spent || tooOld {
		return move{step: stepBury, reason: dedup.ReasonUnknownOutcome}
	}
	return move{step: stepRetry, class: dedup.WaitUnknown, pause: r.retry.Backoff.step(counted(rec))}
}
