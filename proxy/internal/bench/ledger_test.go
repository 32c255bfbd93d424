package main

import (
	"slices"
	"testing"
	"time"
)

func TestLedgerKnowsItsIDs(t *testing.T) {
	l := newLedger("00000000-0000-4000-8000-", 1000)
	if id := l.id(42); id != "00000000-0000-4000-8000-000000000042" {
		t.Errorf("id %q", id)
	}
	if n, known := l.number([]byte(l.id(42))); n != 42 || !known {
		t.Errorf("number %d, %v", n, known)
	}
	for _, strange := range []string{"", "42", l.id(1000), l.id(42) + "0", "00000000-0000-4000-8000-00000000004x", "11111111-0000-4000-8000-000000000042"} {
		if _, known := l.number([]byte(strange)); known {
			t.Errorf("%q is known", strange)
		}
	}
}

func TestLedgerMeasuresFromPublishingToTheFirstPost(t *testing.T) {
	l := newLedger("x", 2)
	l.timed()
	zero := time.Unix(1000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	l.published(0, at(0))
	l.published(1, at(10))
	l.note([]byte(l.id(1)), at(12))
	l.note([]byte(l.id(0)), at(5))
	l.note([]byte(l.id(0)), at(50))
	if got := l.latencies(); !slices.Equal(got, []time.Duration{2 * time.Millisecond, 5 * time.Millisecond}) {
		t.Errorf("latencies %v", got)
	}
	if !l.lastPost().Equal(at(50)) || l.extra() != 1 || l.missing() != 0 {
		t.Errorf("last %v, extra %d, missing %d", l.lastPost(), l.extra(), l.missing())
	}
}
