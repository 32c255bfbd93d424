package dedup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleTime is when the sample records are read.
const sampleTime = 1_700_000_000_000

// sampleRecords has one record of every shape.
func sampleRecords() map[string]*record {
	head := record{
		attempts: 513, deferred: 258, unknowns: 3, first: 1_700_000_000_123, fingerprint: 0x010203040506,
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
		"waiting": waiting,
		"done":    with(func(r *record) { r.state, r.at, r.status = StateDone, 1_700_000_000_500, 204 }),
		"done, plainly": with(func(r *record) {
			r.state, r.at, r.status, r.attempts, r.deferred, r.unknowns = StateDone, sampleTime, 200, 255, 0, 0
		}),
		"dead": with(func(r *record) {
			r.state, r.at, r.notBefore, r.reason, r.deadID = StateDead, sampleTime+7, sampleTime+9, ReasonMaxAge, deadID{8, 9}
		}),
		"processing, created":   processing(undoDelete, nil),
		"processing, waited":    processing(undoRestore, waiting),
		"processing, took over": processing(undoRestore, processing(undoNone, nil)),
		"processing, stripped":  processing(undoNone, nil),
	}
}

func TestRecordsSurviveStorage(t *testing.T) {
	for name, want := range sampleRecords() {
		t.Run(name, func(t *testing.T) {
			got, err := parseRecord(string(appendRecord(nil, want)), sampleTime)
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
	for name, want := range map[string]int{"done, plainly": 20, "done": 24} {
		if got := len(appendRecord(nil, sampleRecords()[name])); got != want {
			t.Errorf("%s: a record of %d bytes, want %d", name, got, want)
		}
	}
}

// TestTimesAreTheNearest holds what the 40 stored bits can tell, wherever now
// is between two of their overflows.
func TestTimesAreTheNearest(t *testing.T) {
	const overflow = 1 << 40
	for _, now := range []int64{0, 946_684_800_000, sampleTime, 2*overflow - 1, 2 * overflow, 5*overflow/2 + 1} {
		for _, away := range []int64{0, 1, -1, 60_000, -60_000, maxRetention.Milliseconds(), -maxRetention.Milliseconds()} {
			if got := readTime(string(appendTime(nil, now+away)), now); got != now+away {
				t.Errorf("at %d, %d away: got %d away", now, away, got-now)
			}
		}
	}
}

func TestADoneRecordHasOneForm(t *testing.T) {
	r := sampleRecords()["done, plainly"]
	short := appendRecord(nil, r)
	if got, err := parseRecord(string(appendCounters(short[:len(short)-1], r)), sampleTime); err == nil {
		t.Errorf("the long form of short counters parses as %+v", got)
	}
}

func TestTruncatedRecordsAreCorrupt(t *testing.T) {
	for name, r := range sampleRecords() {
		stored := string(appendRecord(nil, r))
		for i := range len(stored) {
			if name == "done" && i == doneSize {
				continue // as long as the short form
			}
			if got, err := parseRecord(stored[:i], sampleTime); err == nil {
				t.Errorf("%s cut to %d of %d bytes parses as %+v", name, i, len(stored), got)
			}
		}
		if got, err := parseRecord(stored+"x", sampleTime); err == nil {
			t.Errorf("%s with a byte too many parses as %+v", name, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range sampleRecords() {
		f.Add(string(appendRecord(nil, r)))
	}
	f.Fuzz(func(t *testing.T, stored string) {
		r, err := parseRecord(stored, sampleTime)
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
