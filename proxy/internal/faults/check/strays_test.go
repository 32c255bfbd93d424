package check

import "testing"

// wakesUp is a process that is stopped between its look at the lease and the request, while another does the work.
const wakesUp = `
process e 0 -
stop e 130 142
= retry/x
pub 129
claim 129.9 1 A
claim 141.5 2 B unknown
send 141.6 c 2 flagged 141.6 141.7 200 worked
done 141.8
send 142.05 e 1 142.05 142.1 200 worked
`

func TestStrays(t *testing.T) {
	others := "claim 141.5 2 B unknown\nsend 141.6 c 2 flagged 141.6 141.7 200 worked\ndone 141.8"
	all := []Rule{AfterDone, AttemptRepeated, TooEarly, Unflagged}
	accepted(t, []excuse{
		{"after the other has done it", wakesUp, []Remark{Stray, SkippedStopped}, []forgery{
			{"it woke up long before", "", "stop e 130 142", "stop e 130 141.04", all},
			{"it woke up afterwards", "", "stop e 130 142", "stop e 130 142.11", all},
			{"stopped for less than a lease", "", "stop e 130 142", "stop e 137.1 142", append(all, AttemptSkipped)},
			{"its claim began while it was stopped", "", "claim 129.9 1 A", "claim 130.06 1 A", all},
			{"no claim", "", "claim 129.9 1 A", "", all},
			{"nobody took its claim over", "", others, "send 141.6 c 2 flagged 141.6 141.7 200 worked\ndone 142.2", all[1:]},
			{"its claim was given back", "", others, "absent\nsend 141.6 c 2 flagged 141.6 141.7 200 worked\ndone 142.2", all[1:]},
		}},
		{"while the other does it", swap(t, swap(t, wakesUp, "141.6 141.7 200 worked", "141.6 142.2 200 worked"), "done 141.8\n", "") + "done 142.3", []Remark{Stray, SkippedStopped, AtOnceStopped}, []forgery{
			{"the other took it over afterwards", "", "claim 141.5 2 B unknown", "claim 142.11 2 B unknown", []Rule{AtOnce, AttemptRepeated, TooEarly, Unflagged}},
		}},
		{"stopped for just a lease", swap(t, wakesUp, "stop e 130 142", "stop e 137 142"), []Remark{Stray, SkippedStopped}, nil},
		{"the store's clock is a little ahead", swap(t, swap(t, wakesUp, "claim 141.5 2", "claim 142.1 2"), "done 141.8", "done 142.1"), []Remark{Stray, SkippedStopped}, nil},
		{"under lookup", swap(t, wakesUp, "= retry/x", "= lookup/x"), []Remark{Stray, SkippedStopped}, nil},
		{
			"it changes nothing for the next", swap(t, swap(t, wakesUp, "141.6 141.7 200 worked\ndone 141.8", "141.6 141.7 500"), "142.1 200 worked", "142.5 500") +
				"process g 0 142.3 killed\nsend 160 c 4 flagged 160 160.1 200 worked\ndone 161",
			[]Remark{Stray, SkippedStopped, SkippedKilled},
			nil,
		},
		{"before the other", swap(t, swap(t, wakesUp, "send 141.6 c 2 flagged 141.6 141.7", "send 142.1 c 2 flagged 142.1 142.2"), "done 141.8\nsend 142.05 e 1 142.05 142.1", "done 142.3\nsend 142.05 e 1 142.05 142.15"), []Remark{Stray, AtOnceStopped}, nil},
	})
	second := `
process g 0 -
stop g 150 162
= retry/y
pub 149
claim 149.9 1 A
claim 161.5 2 B unknown
send 161.6 c 2 flagged 161.6 161.7 200 worked
done 161.8
send 162.05 g 1 162.05 162.1 200 worked`
	rejected(t, []forgery{
		{"two are no chance", wakesUp + second, "", "", []Rule{Strays, Strays}},
	})
}
