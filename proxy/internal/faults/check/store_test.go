package check

import "testing"

func TestAfterDone(t *testing.T) {
	late := `
= retry/x
pub 40
send 40 c 1 40 40.1 0 worked
done 51
send 51.05 b 2 flagged 51.05 51.1 200 worked`
	rejected(t, []forgery{
		{"a claim", "", "done 20.25", "done 20.25\nclaim 20.3 2 B", []Rule{AfterDone}},
		{"a pause", "", "done 20.25", "done 20.25\nwait 20.3", []Rule{AfterDone}},
		{"a death", "", "done 20.25", "done 20.25\ndead 20.3", []Rule{AfterDone}},
		{"deleted", "", "done 20.25", "done 20.25\nabsent", []Rule{AfterDone}},
		{"a claim between two successes", "", "done 20.25", "done 20.25\nclaim 20.3 2 B\ndone 20.4", []Rule{AfterDone}},
		{"a claim after a claim and a letter", "", "done 20.25", "done 20.25\ndead 20.3\nabsent\ndone 20.4\nsend 30.3 c 1 30.3 30.4 400", []Rule{AfterDone, AfterDone, AfterDone, AttemptRepeated, Unflagged}},
	})
	accepted(t, []excuse{
		{"recorded again", "= retry/x\npub 40\nsend 40 c 1 40 40.1 200 worked\ndone 40.2\ndone 40.4", nil, nil},
		{"the store's clock is a little behind", late, nil, []forgery{
			{"a request", "", "send 51.05 b 2 flagged 51.05", "send 51.06 b 2 flagged 51.06", []Rule{AfterDone}},
			{"a request after the first of two successes", "", "done 51\nsend 51.05", "done 50\ndone 52\nsend 51.05", []Rule{AfterDone}},
		}},
	})
}

// overtook is a success that is recorded between the next claim and its request.
const overtook = `
process e 0 -
= retry/x
pub 119
send 119.5 e 1 119.5 119.8 200 worked
claim 129.99 2 B unknown
done 130.01
send 130.2 c 2 flagged 130.2 130.3 200 worked
`

func TestOvertaken(t *testing.T) {
	accepted(t, []excuse{
		{"its holder was stopped", overtook + "stop e 124.6 129.6", []Remark{AfterDoneOvertaken}, []forgery{
			{"claimed after it", "", "claim 129.99 2 B unknown", "", []Rule{AfterDone}},
			{"not flagged", "", "send 130.2 c 2 flagged", "send 130.2 c 2", []Rule{AfterDone, Unflagged}},
			{"later than a lease", "", "send 130.2 c 2 flagged 130.2 130.3", "send 135.01 c 2 flagged 135.01 135.2", []Rule{AfterDone}},
			{"its holder was stopped for less than a lease", "", "stop e 124.6 129.6", "stop e 124.61 129.6", []Rule{AfterDone}},
			{"its holder was stopped before", "", "stop e 124.6 129.6", "stop e 105 115", []Rule{AfterDone}},
			{"its holder was stopped afterwards", "", "stop e 124.6 129.6", "stop e 130.02 140", []Rule{AfterDone}},
			{"another was stopped", "", "stop e 124.6 129.6", "stop c 124.6 129", []Rule{AfterDone}},
			{"its holder did not do the work", "", "119.8 200 worked", "119.8 200", []Rule{AfterDone}},
		}},
		{"almost a lease later", swap(t, overtook, "send 130.2 c 2 flagged 130.2 130.3", "send 135 c 2 flagged 135 135.2") + "stop e 124.6 129.6", []Remark{AfterDoneOvertaken}, nil},
		{"its holder could not reach the store", overtook + "fault outage store e 125 129 0", []Remark{AfterDoneOvertaken}, []forgery{
			{"not for so long", "", "store e 125 129 0", "store e 125.01 129 0", []Rule{AfterDone}},
			{"another could not", "", "store e 125 129 0", "store c 125 129 0", []Rule{AfterDone}},
			{"before", "", "store e 125 129 0", "store e 110 119.4 0", []Rule{AfterDone}},
			{"afterwards", "", "store e 125 129 0", "store e 130.02 140 0", []Rule{AfterDone}},
			{"it could not reach the broker", "", "store e 125 129 0", "broker e 125 129 0", []Rule{AfterDone}},
		}},
		{"nobody could reach the store", overtook + "fault outage store all 125 129 0", []Remark{AfterDoneOvertaken}, nil},
	})
}

func TestUnrecorded(t *testing.T) {
	unrecorded := `
process e 0 60 killed
= retry/x
pub 40
send 40 e 1 40 41 200 worked
`
	rejected(t, []forgery{
		{"no record", "", "done 20.25", "", []Rule{Unrecorded}},
		{"the excuse of one that did not do it", "process e 0 60 killed\n= retry/x\npub 40\nsend 40 e 1 40 40.1 0\nsend 50 c 2 flagged 50 50.1 200 worked\nfault outage store e 51 55 0", "", "", []Rule{Unrecorded}},
		{"no record, and the letter is a conflict's", "", "done 34.3", "", []Rule{Unrecorded}},
	})
	accepted(t, []excuse{
		{"the store was away until the process was killed", unrecorded + "fault outage store e 51 55 0", []Remark{UnrecordedStore}, []forgery{
			{"not for so long", "", "store e 51 55 0", "store e 51 54.99 0", []Rule{Unrecorded}},
			{"before", "", "store e 51 55 0", "store e 30 39.9 0", []Rule{Unrecorded}},
			{"afterwards", "", "store e 51 55 0", "store e 51.01 59 0", []Rule{Unrecorded}},
			{"for another", "", "store e 51 55 0", "store c 51 55 0", []Rule{Unrecorded}},
			{"the process lives", "", "process e 0 60 killed", "process e 0 -", []Rule{Unrecorded}},
			{"the process had ended before", "", "process e 0 60 killed", "process e 0 41 killed", []Rule{Unrecorded}},
			{"no work", "", "41 200 worked", "41 200", []Rule{Lost}},
		}},
		{"the store was away until the process was terminated", swap(t, unrecorded, "60 killed", "60") + "fault outage store all 56.8 57 0", []Remark{UnrecordedStore}, []forgery{
			{"killed", "", "process e 0 60", "process e 0 60 killed", []Rule{Unrecorded}},
			{"it was back in time", "", "56.8 57 0", "56.8 56.99 0", []Rule{Unrecorded}},
			{"it was away afterwards", "", "56.8 57 0", "60.01 60.1 0", []Rule{Unrecorded}},
		}},
		{"the second of two did it", "process e 0 60 killed\n= retry/x\npub 40\nsend 40 c 1 40 40.1 0 worked\nsend 50 e 2 flagged 50 50.1 200 worked\nfault outage store e 51 55 0", []Remark{UnrecordedStore}, nil},
		{"it is in a letter", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 0 worked\nletter unknown-outcome 1", []Remark{UnknownRequest}, nil},
	})
}
