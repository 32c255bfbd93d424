package check

import "testing"

func TestLettersKeepThePayload(t *testing.T) {
	rejected(t, []forgery{
		{"other body", "", "letter attempts-exhausted 3", "letter attempts-exhausted 3 changed", []Rule{LetterChanged}},
		{"body of the conflict", "= retry/x reject\npub 40\npub 41 conflict\nletter conflict 0 conflict\nletter rejected 1 conflict", "", "", []Rule{LetterChanged}},
		{"conflict with the original's body", "", "letter conflict 0 conflict", "letter conflict 0 conflict\nletter conflict 0", []Rule{LetterChanged}},
		{"unknown-outcome", "", "letter unknown-outcome 1", "letter unknown-outcome 1 changed", []Rule{LetterChanged}},
	})
	h := parse(t, honest)
	h.Letters[0].Payload.Properties = "others"
	if got := broken(Check(h)); len(got) != 1 || got[0] != LetterChanged {
		t.Errorf("with other properties these rules are broken: %v", got)
	}
}

func TestLettersSayWhy(t *testing.T) {
	done := "= retry/x\npub 40\nsend 40 c 1 40 40.1 500\n"
	rejected(t, []forgery{
		{"conflict of nothing", "= retry/x\npub 40\nsend 40 c 1 40 40.1 200 worked\ndone 41\nletter conflict 0", "", "", []Rule{LetterReason}},
		{"rejected, but the service would do it", done + "letter rejected 1", "", "", []Rule{LetterReason}},
		{"given up, but the service would do it", done + "send 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 500\nletter attempts-exhausted 3", "", "", []Rule{LetterReason}},
		{"unknown under retry", "= retry/x\npub 40\nsend 40 c 1 40 40.1 0\nletter unknown-outcome 1", "", "", []Rule{LetterReason}},
		{"unknown under lookup", "= lookup/x exhaust\npub 40\nsend 40 c 3 40 40.1 0\nletter unknown-outcome 3", "", "", []Rule{AttemptSkipped, LetterReason}},
		{"given up, but the service rejects it", "= retry/x reject\npub 40\nsend 40 c 1 40 40.1 400\nsend 41 c 2 41 41.1 400\nsend 42 c 3 42 42.1 400\nletter attempts-exhausted 3", "", "", []Rule{LetterReason}},
		{"rejected, but the service fails", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nletter rejected 1", "", "", []Rule{LetterReason}},
		{"given up too early", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nletter attempts-exhausted 2", "", "", []Rule{LetterReason}},
		{"given up too late", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 500\nsend 43 c 4 43 43.1 500\nletter attempts-exhausted 4", "", "", []Rule{LetterReason}},
		{"a reason of another kind", "= retry/x reject\npub 40\nsend 40 c 1 40 40.1 400\nletter max-age 1", "", "", []Rule{LetterReason}},
	})
	for _, status := range []string{"409", "425", "429", "503"} {
		accepted(t, []excuse{
			{"deferred " + status, "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 " + status + "\nsend 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 500\nsend 43 c 4 43 43.1 500\nletter attempts-exhausted 4", nil, nil},
		})
	}
}

// TestLettersCountTheClaimThatFoundTooMany: one attempt more, when the record says so and it was never sent.
func TestLettersCountTheClaimThatFoundTooMany(t *testing.T) {
	const killed = `
process k 0 42.5 killed
= retry/x exhaust
pub 40
send 40 k 1 40 40.1 500
send 41 k 2 41 41.1 500
send 42 k 3 42 42.1 500
claim 53 4 B unknown
dead 53.1 unknown
letter attempts-exhausted 4
`
	accepted(t, []excuse{{"never sent", killed, nil, []forgery{
		{"one more still", "", "dead 53.1 unknown\nletter attempts-exhausted 4", "dead 53.1 unknown\nletter attempts-exhausted 5", []Rule{LetterReason}},
		{"the record does not count it", "", "claim 53 4 B unknown", "claim 53 3 B unknown", []Rule{LetterReason}},
		{"sent", "", "claim 53 4 B unknown", "claim 53 4 B unknown\nsend 53 r 4 flagged 53 53.1 500", []Rule{LetterReason}},
	}}})
}

// TestLettersOfRequestsThatTheNetworkMissed: a connection that is reset takes bytes with it that nobody has read.
func TestLettersOfRequestsThatTheNetworkMissed(t *testing.T) {
	const missed = "fault reset service all 40 40.1 0\n= deadletter/x\npub 40\nclaim 40.05 1 A\ndead 40.2 unknown\nletter unknown-outcome 1"
	accepted(t, []excuse{{"under deadletter", missed, []Remark{UnknownWire}, []forgery{
		{"no fault", "", "service all 40 40.1", "service all 30 39.9", []Rule{LetterReason}},
		{"a fault of the broker", "", "service all 40 40.1", "broker all 40 40.1", []Rule{LetterReason}},
		{"known", "", "dead 40.2 unknown", "dead 40.2", []Rule{LetterReason}},
		{"unknown before", "", "claim 40.05 1 A", "claim 40.05 1 A unknown", []Rule{LetterReason}},
	}}})
	const flagged = "process e 0 -\nfault reset service all 42 42.1 0\n= retry/x exhaust\npub 20\nsend 20 c 1 20 30.5 0\nsend 31 c 2 flagged 31 31.1 500\nclaim 42 3 A unknown\ndead 42.2 unknown\nletter unknown-outcome 3"
	accepted(t, []excuse{{"the last attempt of one that was unknown before", flagged, []Remark{UnknownWire}, nil}})
	const last = "fault reset service all 42 42.1 0\n= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nclaim 42 3 A\ndead 42.2 unknown\nletter unknown-outcome 3"
	accepted(t, []excuse{{"the last attempt", last, []Remark{UnknownWire}, []forgery{
		{"not the last", "", "claim 42 3 A", "claim 42 2 A", []Rule{LetterReason}},
	}}})
}

func TestLettersNobodyNeeds(t *testing.T) {
	rejected(t, []forgery{
		{"done", "", "done 20.25", "done 20.25\nletter rejected 1", []Rule{LetterNeedless}},
		{"done, under deadletter, and known", "", "done 39.5", "done 39.5\nletter unknown-outcome 2", []Rule{LetterNeedless}},
		{"done, and looks unknown, under retry", "", "done 210.9", "done 210.9\nletter unknown-outcome 2", []Rule{LetterNeedless}},
		{"done at first", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 200 worked\ndone 41\nwait 42\nletter rejected 1", "", "", []Rule{AfterDone, LetterReason}},
		{"recorded done without work", "= retry/x\npub 40\nsend 40 c 1 40 40.1 200\ndone 41\nletter rejected 1", "", "", []Rule{LetterReason}},
	})
	accepted(t, []excuse{
		{"done, under deadletter, but no answer", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 0 worked\ndone 41\nletter unknown-outcome 1", []Remark{UnknownThoughDone}, []forgery{
			{"answered", "", "40.1 0 worked", "40.1 200 worked", []Rule{LetterNeedless}},
		}},
	})
}

// answered is a request under deadletter that was answered whole, and a letter that says otherwise. Its deadline is 50.
const answered = `
process e 0 -
= deadletter/x
pub 39
claim 39.9 1 A
send 40 e 1 40 40.1 200 worked
dead 56 unknown
letter unknown-outcome 1
`

func TestLettersOfUnknownOutcomes(t *testing.T) {
	known := []Rule{LetterReason}
	accepted(t, []excuse{
		{"no answer", swap(t, answered, "40.1 200 worked", "40.1 0"), []Remark{UnknownRequest}, []forgery{
			{"an answer", "", "40.1 0", "40.1 500", known},
		}},
		{"never arrived", swap(t, answered, "40 40.1 200 worked", "nowhere"), []Remark{UnknownRequest}, nil},
		{"502", swap(t, answered, "40.1 200 worked", "40.1 502"), []Remark{UnknownRequest}, nil},
		{"504", swap(t, answered, "40.1 200 worked", "40.1 504"), []Remark{UnknownRequest}, nil},
		{"answered at the deadline", swap(t, answered, "40.1 200", "49.91 200"), []Remark{UnknownRequest}, []forgery{
			{"answered in time", "", "49.91 200", "49.9 200", known},
		}},
		{"the second was not answered", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 0\nletter unknown-outcome 1", []Remark{UnknownRequest}, nil},
		{"rejected", "= deadletter/x reject\npub 40\nsend 40 c 1 40 40.1 0\nletter unknown-outcome 1", []Remark{UnknownRequest}, nil},
		{"the program was killed", swap(t, answered, "process e 0 -", "process e 0 50 killed"), []Remark{UnknownLost}, []forgery{
			{"before", "", "0 50 killed", "0 38.9 killed", known},
			{"after the letter", "", "0 50 killed", "0 56.01 killed", known},
		}},
		{"the program was terminated", swap(t, answered, "process e 0 -", "process e 0 50"), []Remark{UnknownLost}, []forgery{
			{"after the deadline", "", "0 50\n", "0 50.01\n", known},
			{"before it was sent", "", "0 50\n", "0 39.99\n", known},
		}},
		{"the network to the service failed", answered + "fault cut service all 50 51 0", []Remark{UnknownLost}, []forgery{
			{"after the deadline", "", "all 50 51 0", "all 50.01 51 0", known},
			{"before", "", "all 50 51 0", "all 39 39.99 0", known},
			{"for another", "", "all 50 51 0", "c 50 51 0", known},
			{"to the broker", "", "cut service all 50 51 0", "cut broker all 50 51 0", known},
		}},
		{"the network of this process to the service failed", answered + "fault cut service e 45 46 0", []Remark{UnknownLost}, nil},
		{"the store was away", answered + "fault outage store e 50 51 0", []Remark{UnknownLost}, []forgery{
			{"after the letter", "", "e 50 51 0", "e 56.01 57 0", known},
			{"before it was published", "", "e 50 51 0", "e 38 38.99 0", known},
		}},
		{"the deadline passed in a stop", answered + "stop e 48 49.8", []Remark{UnknownLost}, []forgery{
			{"it was over before", "", "stop e 48 49.8", "stop e 48 49.79", known},
			{"it began after", "", "stop e 48 49.8", "stop e 50.01 52", known},
		}},
		{"it was stopped for half its lease", answered + "stop e 40.2 42.7", []Remark{UnknownLost}, []forgery{
			{"not for so long", "", "stop e 40.2 42.7", "stop e 40.2 42.69", known},
			{"before", "", "stop e 40.2 42.7", "stop e 35 39", known},
			{"after its deadline", "", "stop e 40.2 42.7", "stop e 50.01 54", known},
			{"another was", "", "stop e 40.2 42.7", "stop c 40.2 42.7", known},
		}},
		{"a process was stopped past its lease", answered + "stop c 50 55", []Remark{UnknownClaim}, []forgery{
			{"not for so long", "", "stop c 50 55", "stop c 50 54.99", known},
		}},
		{"another process was killed with the claim", answered + "process g 0 50 killed", []Remark{UnknownClaim}, []forgery{
			{"before it was published", "", "0 50 killed", "0 38.99 killed", known},
			{"after the letter", "", "0 50 killed", "0 56.01 killed", known},
			{"another reason", "", "letter unknown-outcome 1\nprocess g", "letter rejected 1\nprocess g", known},
		}},
		{"no request at all", "= deadletter/x\npub 40\nprocess g 0 50 killed\ndead 56 unknown\nletter unknown-outcome 0", []Remark{UnknownClaim}, nil},
	})
}

func TestUnknownLastAttempt(t *testing.T) {
	accepted(t, []excuse{
		{"its last attempt was not answered", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 500\nsend 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 0\nletter unknown-outcome 3", []Remark{UnknownLastAttempt}, []forgery{
			{"it was not the last", "", "send 41 c 2 41 41.1 500\nsend 42 c 3 42 42.1 0", "send 41 c 2 41 41.1 0", []Rule{LetterReason}},
			{"it was answered", "", "42.1 0", "42.1 500", []Rule{LetterReason}},
			{"the service would do it", "", "= retry/x exhaust", "= retry/x", []Rule{LetterReason}},
			{"the service would reject it", "", "= retry/x exhaust", "= retry/x reject", []Rule{LetterReason}},
			{"under lookup", "", "= retry/x exhaust", "= lookup/x exhaust", []Rule{LetterReason}},
		}},
	})
	rejected(t, []forgery{
		{"no request", "= retry/x exhaust\npub 40\nletter unknown-outcome 3", "", "", []Rule{LetterReason}},
		{"the last was answered, one before was not", "= retry/x exhaust\npub 40\nsend 40 c 1 40 40.1 0\nsend 50 c 2 flagged 50 50.1 500\nsend 51 c 3 flagged 51 51.1 500\nletter unknown-outcome 3", "", "", []Rule{LetterReason}},
	})
}
