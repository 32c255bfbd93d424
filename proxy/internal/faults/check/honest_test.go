package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cast is the processes and faults of the honest run. Everything quiet is before 95.
const cast = `
process a 0 200 killed
process b 0 -
process c 0 -
process d 0 300
stop b 100 112
fault kill process a 200 200 3
fault stop process b 100 112 2
fault outage store all 400 410 5
fault refuse service all 500 510 7
fault refuse broker all 600 610 1
fault refuse broker all 700 710 1
`

const honest = cast + `
= retry/plain
pub 20
pub 21
pub 22 unconfirmed
claim 20.05 1 A
send 20.1 b 1 20.1 20.2 200 worked
done 20.25

= retry/failed
pub 23
claim 23.05 1 A
send 23.1 b 1 23.1 23.2 500
wait 23.3
claim 24.3 2 B
send 24.4 c 2 24.4 24.5 200 worked
done 24.6

= retry/exhausted exhaust
pub 25
claim 25 1 A
send 25.1 b 1 25.1 25.2 500
wait 25.3
claim 26.0 2 B
send 26.1 c 2 26.1 26.2 500
wait 26.3
claim 27.0 3 C
send 27.1 c 3 27.1 27.2 500
dead 27.3
letter attempts-exhausted 3

= retry/deferred exhaust
pub 28
send 28.1 b 1 28.1 28.2 503
send 28.4 b 2 28.4 28.5 500
send 28.7 b 3 28.7 28.8 500
send 28.91 b 4 28.91 28.92 500
letter attempts-exhausted 4

= retry/rejected reject
pub 31
pub 31.1
claim 31.05 1 A
send 31.2 b 1 31.2 31.3 400
dead 31.4
letter rejected 1
absent
claim 32.5 1 B
send 32.6 c 1 32.6 32.7 400
dead 32.8
letter rejected 1
absent

= retry/conflict
pub 34
pub 35 conflict
claim 34.05 1 A
send 34.1 b 1 34.1 34.2 200 worked
done 34.3
letter conflict 0 conflict

= deadletter/open
pub 37
claim 37.05 1 A
send 37.1 b 1 37.1 37.2 0
dead 37.4 unknown
letter unknown-outcome 1

= deadletter/retried
pub 38
claim 38.05 1 A
send 38.1 b 1 38.1 38.2 500
wait 38.3
claim 39.2 2 B
send 39.3 c 2 39.3 39.4 200 worked
done 39.5

= lookup/notdone
pub 50
claim 50.05 1 A
send 50.1 b 1 50.1 51.2 0
wait 51.3
claim 61.55 2 B unknown
claim 61.6 2 B
send 61.7 c 2 61.7 61.8 200 worked
done 61.9

= lookup/done
pub 63
claim 63.05 1 A
send 63.1 b 1 63.1 63.2 0 worked
done 74.5

= retry/twice
pub 199
claim 199.4 1 A
send 199.5 a 1 199.5 199.9 0 worked
claim 210.6 2 B unknown
send 210.7 c 2 flagged 210.7 210.8 200 worked
done 210.9

= retry/sticky
pub 70
claim 70.05 1 A
send 70.1 b 1 nowhere
wait 70.5
claim 81.1 2 B unknown
send 81.2 b 2 flagged 81.2 81.3 500
wait 81.4
claim 81.9 3 C unknown
send 82.1 c 3 flagged 82.1 82.2 200 worked
done 82.3
`

func TestAnHonestRunPasses(t *testing.T) {
	report := Check(parse(t, honest))
	if len(report.Violations) > 0 {
		t.Errorf("violations:\n%s", text(report))
	}
	want := map[Remark]int{
		Publications: 16, IDs: 12, DuplicatesStopped: 2, Requests: 24, RequestsFlagged: 3, WorkedTwice: 1,
		Outcomes: 5, OutcomeDoneLater: 3, OutcomeDone: 1, OutcomeLetter: 1,
		UnknownRequest: 1, LetterRepeated: 1,
		LettersOf("attempts-exhausted"): 2, LettersOf("rejected"): 2, LettersOf("conflict"): 1, LettersOf("unknown-outcome"): 1,
		FaultsOf("kill"): 1, FaultsOf("stop"): 1, FaultsOf("outage"): 1, FaultsOf("refuse"): 3,
		InFlightOf("kill"): 3, InFlightOf("stop"): 2, InFlightOf("outage"): 5, InFlightOf("refuse"): 9,
	}
	if diff := cmp.Diff(want, report.Remarks); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}

// TestViolationsSayWhereAndWhen: a person reads them without the journals.
func TestViolationsSayWhereAndWhen(t *testing.T) {
	got := text(Check(parse(t, swap(t, honest, "send 82.1 c 3 flagged", "send 82.1 c 3"))))
	want := "unflagged: retry sticky: attempt 3 of c, sent 22:14:42.100, at work 22:14:42.100 to 22:14:42.200, status 200, worked; " +
		"after attempt 2 of b, sent 22:14:41.200, flagged, at work 22:14:41.200 to 22:14:41.300, status 500\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	began := seconds("40")
	for _, row := range []struct {
		request Request
		want    string
	}{
		{Request{Attempt: 1, Process: "a", Sent: began}, "attempt 1 of a, sent 22:14:00.000, never arrived"},
		{Request{Attempt: 1, Process: "a", Sent: began, Began: began}, "attempt 1 of a, sent 22:14:00.000, began 22:14:00.000, still at work"},
	} {
		if got := describe(&row.request); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
