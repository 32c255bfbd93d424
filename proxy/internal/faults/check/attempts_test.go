package check

import "testing"

// skips is an ID whose second attempt nobody sent: claimable again from 40.2, sent again at 60.
const skips = `
process e 0 -
process f 0 -
= retry/x
pub 40
send 40.1 c 1 40.1 40.2 500
send 60 c 3 flagged 60 60.1 200 worked
done 60.2`

func TestAttemptsRiseByOne(t *testing.T) {
	rejected(t, []forgery{
		{"the same twice", "", "send 24.4 c 2", "send 24.4 c 1", []Rule{AttemptRepeated}},
		{"a lower one", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nsend 42 c 1 42 42.1 500\nsend 43 c 3 43 43.1 200 worked\ndone 44", "", "", []Rule{AttemptRepeated}},
		{"the first is not 1", "", "send 20.1 b 1", "send 20.1 b 2", []Rule{AttemptSkipped}},
		{"one is missing", skips, "", "", []Rule{AttemptSkipped}},
		{"again 1, though the letter's outcome was unknown", "", "dead 31.4", "dead 31.4 unknown", []Rule{AttemptRepeated}},
		{"again 1, without a letter", "", "dead 31.4", "wait 31.4", []Rule{AttemptRepeated}},
		{"again 1, though the record was not deleted", "", "absent\nclaim 32.5 1 B", "dead 31.5\nclaim 32.5 1 B", []Rule{AttemptRepeated}},
		{"again 1 without a claim", "", "claim 32.5 1 B", "wait 32.5", []Rule{AttemptRepeated}},
		{"again 1 before the record was deleted", "", "claim 32.5 1 B", "claim 32.66 1 B", []Rule{AttemptRepeated}},
		{"not 1 after the record was deleted", "", "send 32.6 c 1", "send 32.6 c 2", []Rule{AttemptSkipped}},
		{"not 1 after the record was deleted, and the kill was before", "process e 0 31.5 killed", "send 32.6 c 1", "send 32.6 c 2", []Rule{AttemptSkipped}},
	})
	accepted(t, []excuse{
		{"again 1, and the store's clock is a little ahead", "= retry/x reject\npub 40\nsend 40 c 1 40 40.1 400\ndead 40.2\nabsent\nclaim 42.05 1 A\nsend 42 c 1 42 42.1 400\nletter rejected 1", nil, nil},
	})
}

func TestSkippedAttempts(t *testing.T) {
	accepted(t, []excuse{
		{"killed", skips + "\nprocess g 0 40.2 killed", []Remark{SkippedKilled}, []forgery{
			{"before the first was answered", "", "40.2 killed", "40.19 killed", []Rule{AttemptSkipped}},
			{"after the next was sent", "", "40.2 killed", "60.01 killed", []Rule{AttemptSkipped}},
			{"terminated", "", "40.2 killed", "40.2", []Rule{AttemptSkipped}},
			{"still alive", "", "40.2 killed", "-", []Rule{AttemptSkipped}},
			{"two numbers", "", "send 60 c 3", "send 60 c 4", []Rule{AttemptSkipped}},
		}},
		{"killed after a request that was not answered", swap(t, skips, "40.2 500", "40.2 0") + "\nprocess g 0 49.9 killed", []Remark{SkippedKilled}, []forgery{
			{"before its deadline", "", "49.9 killed", "49.89 killed", []Rule{AttemptSkipped}},
		}},
		{"killed before the first", "process g 0 40.5 killed\n= retry/x\npub 40\npub 51\nsend 52 c 2 flagged 52 52.1 200 worked\ndone 52.2", []Remark{SkippedKilled}, []forgery{
			{"before it was published", "", "40.5 killed", "39.9 killed", []Rule{AttemptSkipped}},
		}},
		{"stopped for a lease", skips + "\nstop e 40.2 45.2", []Remark{SkippedStopped}, []forgery{
			{"not for so long", "", "stop e 40.2 45.2", "stop e 40.2 45.19", []Rule{AttemptSkipped}},
			{"before the first was answered", "", "stop e 40.2 45.2", "stop e 40.19 45.2", []Rule{AttemptSkipped}},
			{"after the next was sent", "", "stop e 40.2 45.2", "stop e 60.01 67", []Rule{AttemptSkipped}},
		}},
		{"stopped to the end", skips + "\nstop e 50 -", []Remark{SkippedStopped}, nil},
		{"the store is away", skips + "\nfault outage store all 39 40.2 0", []Remark{SkippedStore}, []forgery{
			{"before the first was answered", "", "39 40.2 0", "39 40.19 0", []Rule{AttemptSkipped}},
			{"after the next was sent", "", "39 40.2 0", "60.01 61 0", []Rule{AttemptSkipped}},
			{"the broker is away", "", "outage store all 39 40.2 0", "outage broker all 39 50 0", []Rule{AttemptSkipped}},
			{"the service is away", "", "outage store all 39 40.2 0", "outage service all 39 50 0", []Rule{AttemptSkipped}},
			{"a fault of a process", "", "outage store all 39 40.2 0", "kill process c 39 50 0", []Rule{AttemptSkipped}},
			{"two numbers", "", "send 60 c 3", "send 60 c 4", []Rule{AttemptSkipped}},
		}},
		{"terminated while the store is away for it", swap(t, skips, "send 60 c 3", "send 60 c 4") + "\nprocess g 0 50\nfault outage store g 49 50.1 0", []Remark{SkippedTerminated, SkippedStore}, nil},
		{"the store is away to the end", skips + "\nfault outage store all 59 - 0", []Remark{SkippedStore}, nil},
		{"terminated while the store is away", swap(t, skips, "send 60 c 3", "send 60 c 4") + "\nprocess g 0 50\nfault outage store all 49 50.1 0", []Remark{SkippedTerminated, SkippedStore}, []forgery{
			{"not terminated", "", "process g 0 50", "process g 0 -", []Rule{AttemptSkipped}},
			{"terminated before", "", "process g 0 50", "process g 0 40.1", []Rule{AttemptSkipped}},
			{"the store was away before", "", "49 50.1 0", "39 40.1 0", []Rule{AttemptSkipped}},
		}},
	})
}

const gaveUp = `
= retry/x exhaust
pub 40
send 40 c 1 40 40.1 500
send 41 c 2 41 41.1 500
dead 60
absent
letter attempts-exhausted 3
`

func TestSpentAttempts(t *testing.T) {
	rejected(t, []forgery{
		{"one was not sent", gaveUp, "", "", []Rule{AttemptSpent}},
		{"none was sent", "process g 0 50 killed\n= retry/x exhaust\npub 40\ndead 60\nletter attempts-exhausted 3", "", "", []Rule{AttemptSpent}},
	})
	accepted(t, []excuse{
		{"killed before the last", gaveUp + "process g 0 41.1 killed", []Remark{SkippedKilled}, []forgery{
			{"before the one before it was answered", "", "41.1 killed", "41.09 killed", []Rule{AttemptSpent}},
			{"after the letter was decided", "", "41.1 killed", "60.01 killed", []Rule{AttemptSpent}},
			{"two are missing", "", "send 41 c 2 41 41.1 500", "", []Rule{AttemptSpent}},
			{"its death is not recorded", "", "dead 60", "", []Rule{AttemptSpent}},
		}},
		{"a second letter", gaveUp + "process g 0 50 killed\nletter attempts-exhausted 3", []Remark{SkippedKilled, LetterRepeated}, nil},
		{"more was sent", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 503\nsend 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 500\nsend 43 c 4 43 43.1 500\nletter attempts-exhausted 3", nil, nil},
		{"a rejected one was tried again from 1", "process g 0 50 killed\n= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 500\ndead 43\nabsent\nclaim 44 1 A\nsend 44.1 c 1 44.1 44.2 500\nletter attempts-exhausted 3", nil, nil},
	})
}
