package dedup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleRecords has one record of every shape.
func sampleRecords() map[string]*record {
	head := record{
		attempts: 513, deferred: 258, unknowns: 3, first: 1_700_000_000_123, fingerprint: 0x0102030405060708,
	}
	with := func(change func(*record)) *record {
		r := head
		change(&r)
		return &r
	}
	waiting := with(func(r *record) { r.state, r.notBefore = StateWaiting, 1_700_000_009_999 })
	processing := func(u undo, previous *record) *record {
		return with(func(r *record) {
			r.state, r.everUnknown, r.token = StateProcessing, true, Token{1, 2, 3, 15: 0xff}
			r.leaseUntil, r.deadline, r.undo, r.previous = 1_700_000_030_000, 1_700_000_060_000, u, previous
		})
	}
	return map[string]*record{
		"waiting":               waiting,
		"done":                  with(func(r *record) { r.state, r.at, r.status = StateDone, 1_700_000_000_500, 204 }),
		"dead":                  with(func(r *record) { r.state, r.at, r.reason, r.deadID = StateDead, 7, ReasonMaxAge, deadID{8, 9} }),
		"processing, created":   processing(undoDelete, nil),
		"processing, waited":    processing(undoRestore, waiting),
		"processing, took over": processing(undoRestore, processing(undoNone, nil)),
		"processing, stripped":  processing(undoNone, nil),
	}
}

func TestRecordsSurviveStorage(t *testing.T) {
	for name, want := range sampleRecords() {
		t.Run(name, func(t *testing.T) {
			got, err := parseRecord(string(appendRecord(nil, want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{})); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// TestADoneRecordStaysSmall guards what a recorded ID costs: see codec.go.
func TestADoneRecordStaysSmall(t *testing.T) {
	if doneSize != 28 {
		t.Errorf("a done record has %d bytes, want 28", doneSize)
	}
}

func TestTruncatedRecordsAreCorrupt(t *testing.T) {
	for name, r := range sampleRecords() {
		stored := string(appendRecord(nil, r))
		for i := range len(stored) {
			// A created claim's record ends before its tail; nothing shorter
			// of any other is a record.
			if got, err := parseRecord(stored[:i]); err == nil {
				t.Errorf("%s cut to %d of %d bytes parses as %+v", name, i, len(stored), got)
			}
		}
		if got, err := parseRecord(stored + "x"); err == nil {
			t.Errorf("%s with a byte too many parses as %+v", name, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range sampleRecords() {
		f.Add(string(appendRecord(nil, r)))
	}
	f.Fuzz(func(t *testing.T, stored string) {
		r, err := parseRecord(stored)
		if err != nil {
			return
		}
		if again := string(appendRecord(nil, r)); again != stored {
			t.Errorf("%x parses and is stored as %x", stored, again)
		}
		_ = r.export()
	})
}

func FuzzParseAnswer(f *testing.F) {
	for _, r := range sampleRecords() {
		f.Add("c\x01\x02\x03\x04\x05\x06" + string(appendRecord(nil, r)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAnswer(text)
		if err == nil && (a.now < 0 || a.letter != letter(text[0])) {
			t.Errorf("%x parses as %+v", text, a)
		}
	})
}

func TestMillisecondsRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%v: got %d ms, want %d", d, got, want)
		}
	}
}
