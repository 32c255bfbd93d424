package check

import (
	"strconv"
	"testing"
	"time"
)

func TestHowUnknownOutcomesEnded(t *testing.T) {
	for name, row := range map[string]struct {
		story string
		want  Remark
	}{
		"another letter": {"= retry/x reject\npub 40\nsend 40 c 1 40 40.1 0\nsend 50 c 2 flagged 50 50.1 400\nletter rejected 2", OutcomeOtherLetter},
		"recorded done":  {"= retry/x\npub 40\nsend 40 c 1 40 40.1 0\ndone 41", OutcomeDone},
		"still open":     {"= retry/x\npub 40\nsend 40 c 1 40 40.1 0\nleft retry", OutcomeOpen},
		"a letter":       {"= deadletter/x\npub 40\npub 40 conflict\nsend 40 c 1 40 40.1 504\nletter conflict 0 conflict\nletter unknown-outcome 1", OutcomeLetter},
		"done later":     {"= retry/x\npub 40\nsend 40 c 1 40 40.1 502 worked\nsend 50 c 2 flagged 50 50.1 200 worked\ndone 51", OutcomeDoneLater},
	} {
		before, after := Check(parse(t, honest)).Remarks, Check(parse(t, honest+row.story)).Remarks
		if after[Outcomes] != before[Outcomes]+1 || after[row.want] != before[row.want]+1 {
			t.Errorf("%s: not counted as %q: %v", name, row.want, after)
		}
	}
}

func TestWhatWasNotPublishedIsNotCounted(t *testing.T) {
	before, after := Check(parse(t, honest)).Remarks, Check(parse(t, honest+"= retry/nobody\nletter rejected 1")).Remarks
	if after[IDs] != before[IDs] {
		t.Errorf("%d IDs, want %d", after[IDs], before[IDs])
	}
}

// TestLargeHistories: a run has a hundred thousand requests; what looks at each of them for each would take minutes.
func TestLargeHistories(t *testing.T) {
	h := &History{End: seconds("1000"), Queues: map[string]Queue{"retry": {Policy: Retry, Timeout: 10 * time.Second, Lease: 5 * time.Second}}}
	for i := range 100_000 {
		id, at := ID{"retry", strconv.Itoa(i)}, h.End.Add(-time.Hour)
		h.Publications = append(h.Publications, Publication{ID: id, At: at, Confirmed: true})
		h.Requests = append(h.Requests, Request{ID: id, Attempt: 1, Sent: at, Began: at, Ended: at, Worked: true, Status: 200})
		h.Writes = append(h.Writes, Write{ID: id, At: at, State: Done})
	}
	if report := Check(h); len(report.Violations) > 0 {
		t.Errorf("violations:\n%s", text(report))
	}
}
