package proxy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

var testRules = rules{
	retry:     RetryConfig{Backoff: Ladder{time.Second, 5 * time.Second, 30 * time.Second}, MaxAttempts: 6, MaxAge: time.Hour},
	onUnknown: forward.UnknownRetry, unknownMax: 3,
}

func with(r rules, change func(*rules)) rules {
	change(&r)
	return r
}

func TestDecideClaim(t *testing.T) {
	deadletter := with(testRules, func(r *rules) { r.onUnknown = forward.UnknownDeadLetter })
	granted := func(rec dedup.Record) dedup.Claim { return dedup.Claim{Verdict: dedup.Claimed, Record: rec} }
	tests := map[string]struct {
		claim dedup.Claim
		rules rules
		want  move
	}{
		"fresh":                       {granted(dedup.Record{Attempts: 1}), testRules, move{step: stepPost}},
		"last attempt":                {granted(dedup.Record{Attempts: 6}), testRules, move{step: stepPost}},
		"past the last attempt":       {granted(dedup.Record{Attempts: 7}), testRules, move{step: stepBury, reason: dedup.ReasonAttemptsExhausted}},
		"deferred ones do not count":  {granted(dedup.Record{Attempts: 107, Deferred: 101}), testRules, move{step: stepPost}},
		"taken over":                  {granted(dedup.Record{Attempts: 2, Unknown: 1, EverUnknown: true}), testRules, move{step: stepPost}},
		"taken over too often":        {granted(dedup.Record{Attempts: 5, Unknown: 4, EverUnknown: true}), testRules, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
		"taken over, never twice":     {granted(dedup.Record{Attempts: 2, Unknown: 1, EverUnknown: true}), deadletter, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
		"opened by an operator":       {granted(dedup.Record{Attempts: 1, EverUnknown: true}), deadletter, move{step: stepPost}},
		"done":                        {dedup.Claim{Verdict: dedup.Done}, testRules, move{step: stepAck}},
		"busy":                        {dedup.Claim{Verdict: dedup.Busy}, testRules, move{step: stepWait}},
		"waiting":                     {dedup.Claim{Verdict: dedup.Waiting}, testRules, move{step: stepWait}},
		"dead":                        {dedup.Claim{Verdict: dedup.Dead, Record: dedup.Record{Reason: dedup.ReasonRejected}}, testRules, move{step: stepPublish, reason: dedup.ReasonRejected}},
		"conflict":                    {dedup.Claim{Verdict: dedup.Conflict}, testRules, move{step: stepRefuse, reason: dedup.ReasonConflict}},
		"no verdict is never an ack":  {dedup.Claim{}, testRules, move{step: stepWait}},
		"a verdict from later, alike": {dedup.Claim{Verdict: 99}, testRules, move{step: stepWait}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decideClaim(tt.claim, tt.rules), cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("move (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideOutcome(t *testing.T) {
	deadletter := with(testRules, func(r *rules) { r.onUnknown = forward.UnknownDeadLetter })
	tests := map[string]struct {
		res   forward.Result
		rec   dedup.Record
		age   time.Duration
		rules rules
		want  move
	}{
		"done":                       {forward.Result{Outcome: forward.Done}, dedup.Record{Attempts: 9}, 0, testRules, move{step: stepSucceed}},
		"done, however old":          {forward.Result{Outcome: forward.Done}, dedup.Record{Attempts: 9}, 99 * time.Hour, testRules, move{step: stepSucceed}},
		"unreachable":                {forward.Result{Outcome: forward.Unreachable}, dedup.Record{Attempts: 6}, 99 * time.Hour, testRules, move{step: stepRelease}},
		"reject":                     {forward.Result{Outcome: forward.Reject}, dedup.Record{Attempts: 1}, 0, testRules, move{step: stepBury, reason: dedup.ReasonRejected}},
		"first failure":              {forward.Result{Outcome: forward.Fail}, dedup.Record{Attempts: 1}, 0, testRules, move{step: stepRetry, class: dedup.WaitFailed, pause: time.Second}},
		"the ladder's end repeats":   {forward.Result{Outcome: forward.Fail}, dedup.Record{Attempts: 5}, 0, testRules, move{step: stepRetry, class: dedup.WaitFailed, pause: 30 * time.Second}},
		"last failure":               {forward.Result{Outcome: forward.Fail}, dedup.Record{Attempts: 6}, 0, testRules, move{step: stepBury, reason: dedup.ReasonAttemptsExhausted}},
		"failure of an old message":  {forward.Result{Outcome: forward.Fail}, dedup.Record{Attempts: 2}, 2 * time.Hour, testRules, move{step: stepBury, reason: dedup.ReasonMaxAge}},
		"deferred ones do not count": {forward.Result{Outcome: forward.Fail}, dedup.Record{Attempts: 50, Deferred: 49}, 0, testRules, move{step: stepRetry, class: dedup.WaitFailed, pause: time.Second}},
		"defer, ladder of its own":   {forward.Result{Outcome: forward.Defer}, dedup.Record{Attempts: 4, Deferred: 1}, 0, testRules, move{step: stepRetry, class: dedup.WaitDeferred, pause: 5 * time.Second}},
		"defer, as asked":            {forward.Result{Outcome: forward.Defer, RetryAfter: 9 * time.Second}, dedup.Record{Attempts: 1}, 0, testRules, move{step: stepRetry, class: dedup.WaitDeferred, pause: 9 * time.Second, asked: true}},
		"defer, as long as asked":    {forward.Result{Outcome: forward.Defer, RetryAfter: time.Hour}, dedup.Record{Attempts: 1}, 0, testRules, move{step: stepRetry, class: dedup.WaitDeferred, pause: time.Hour, asked: true}},
		"defer past the attempts":    {forward.Result{Outcome: forward.Defer}, dedup.Record{Attempts: 60, Deferred: 59}, 0, testRules, move{step: stepRetry, class: dedup.WaitDeferred, pause: 30 * time.Second}},
		"defer of an old message":    {forward.Result{Outcome: forward.Defer}, dedup.Record{Attempts: 2}, 2 * time.Hour, testRules, move{step: stepBury, reason: dedup.ReasonMaxAge}},
		"unknown":                    {forward.Result{Outcome: forward.Unknown}, dedup.Record{Attempts: 1}, 0, testRules, move{step: stepRetry, class: dedup.WaitUnknown, pause: time.Second}},
		"unknown, third repeat":      {forward.Result{Outcome: forward.Unknown}, dedup.Record{Attempts: 3, Unknown: 2}, 0, testRules, move{step: stepRetry, class: dedup.WaitUnknown, pause: 30 * time.Second}},
		"unknown too often":          {forward.Result{Outcome: forward.Unknown}, dedup.Record{Attempts: 4, Unknown: 3}, 0, testRules, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
		"unknown on last attempt":    {forward.Result{Outcome: forward.Unknown}, dedup.Record{Attempts: 6}, 0, testRules, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
		"unknown, never twice":       {forward.Result{Outcome: forward.Unknown}, dedup.Record{Attempts: 1}, 0, deadletter, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
		"an outcome nobody knows":    {forward.Result{Outcome: 99}, dedup.Record{Attempts: 1}, 0, deadletter, move{step: stepBury, reason: dedup.ReasonUnknownOutcome}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decideOutcome(tt.res, tt.rec, tt.age, tt.rules), cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("move (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingEndsUnsettled goes through every outcome, count and policy: a message ends, or goes on with a pause.
func TestNothingEndsUnsettled(t *testing.T) {
	for _, o := range forward.Outcomes() {
		for attempts := 1; attempts < 12; attempts++ {
			for unknown := 0; unknown < 6; unknown++ {
				rec := dedup.Record{Attempts: attempts, Unknown: unknown}
				mv := decideOutcome(forward.Result{Outcome: o}, rec, 0, testRules)
				switch mv.step {
				case stepSucceed, stepRelease:
				case stepBury:
					if mv.reason == 0 {
						t.Errorf("%v after %+v is buried without a reason", o, rec)
					}
				case stepRetry:
					if mv.pause <= 0 {
						t.Errorf("%v after %+v is tried again at once", o, rec)
					}
				default:
					t.Errorf("%v after %+v leads to %v", o, rec, mv.step)
				}
			}
		}
	}
}
