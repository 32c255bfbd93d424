package check

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forgery is the honest run with a story more, and with one text of it exchanged.
type forgery struct {
	name     string
	story    string
	from, to string
	rules    []Rule // exactly those that it breaks
}

func (f forgery) text(t *testing.T) string {
	t.Helper()
	if f.from == "" {
		return honest + f.story
	}
	return swap(t, honest+f.story, f.from, f.to)
}

// excuse is a story that passes, what it is counted as, and forgeries of it that are just outside.
type excuse struct {
	name    string
	story   string
	remarks []Remark // none: it is as it should be
	outside []forgery
}

func rejected(t *testing.T, forgeries []forgery) {
	t.Helper()
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			report := Check(parse(t, f.text(t)))
			want := slices.Sorted(slices.Values(f.rules))
			if diff := cmp.Diff(want, broken(report)); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s\n%s", diff, text(report))
			}
		})
	}
}

func accepted(t *testing.T, excuses []excuse) {
	t.Helper()
	before := Check(parse(t, honest)).Remarks
	for _, e := range excuses {
		t.Run(e.name, func(t *testing.T) {
			report := Check(parse(t, honest+e.story))
			if len(report.Violations) > 0 {
				t.Errorf("violations:\n%s", text(report))
			}
			want, got := map[Remark]int{}, map[Remark]int{}
			for _, r := range e.remarks {
				want[r]++
			}
			for _, r := range leftOpen() {
				if n := report.Remarks[r] - before[r]; n != 0 {
					got[r] = n
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
			outside := slices.Clone(e.outside)
			for i := range outside {
				outside[i].story = e.story
			}
			rejected(t, outside)
		})
	}
}

// leftOpen is every remark on what the promises leave open.
func leftOpen() []Remark {
	return []Remark{
		AtOnceStopped, AtOncePastDeadline, Stray, AfterDoneOvertaken, LookupTooSoon, SkippedKilled, SkippedStopped, SkippedStore,
		SkippedTerminated, UnknownRequest, UnknownLost, UnknownClaim, UnknownThoughDone, UnknownLastAttempt, LetterRepeated, UnrecordedStore,
	}
}
