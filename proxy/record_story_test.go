package proxy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"rabbitonce/dedup"
)

// storyTime is the store's clock in these tests.
func storyTime() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func storyOf(t *testing.T, rec dedup.Record, left time.Duration) (QueueConfig, story) {
	t.Helper()
	q := mustLoad(t, four()).Queues[0]
	rec.FirstClaimed = storyTime().Add(-time.Minute)
	return q, tell(q, "one", recordPlace{
		source: "message-id", key: "rabbitonce:shop/orders:one",
		sighting: dedup.Sighting{Key: "k", Found: true, Record: rec, Now: storyTime(), Left: left},
	})
}

func TestStories(t *testing.T) {
	now := storyTime()
	for name, c := range map[string]struct {
		record dedup.Record
		words  []string
		not    []string
	}{
		"at work": {
			dedup.Record{State: dedup.StateProcessing, Attempts: 1, LeaseUntil: now.Add(20 * time.Second), Deadline: now.Add(50 * time.Second)},
			[]string{"processing", "none yet", "2026-05-04T12:00:20Z, in 20s", "2026-05-04T12:00:50Z, in 50s at the latest", "at work in a replica", "1m0s ago"},
			[]string{"not before"},
		},
		"holder gone": {
			dedup.Record{State: dedup.StateProcessing, Attempts: 3, Unknown: 1, Deferred: 1, EverUnknown: true, LeaseUntil: now.Add(-time.Second), Deadline: now.Add(time.Second)},
			[]string{"3, 1 of them deferred, 1 with an unknown outcome", "keeps no order", "later requests are flagged", "1s ago", "service may still be at work"},
			nil,
		},
		"nobody's": {
			dedup.Record{State: dedup.StateProcessing, Attempts: 2, LeaseUntil: now.Add(-time.Minute), Deadline: now.Add(-time.Second)},
			[]string{"claimed as another attempt, flagged", "  last outcome     failed\n"},
			[]string{"at work in a replica"},
		},
		"waiting": {
			dedup.Record{State: dedup.StateWaiting, Attempts: 2, Deferred: 2, NotBefore: now.Add(90 * time.Second)},
			[]string{"last outcome     deferred", "in 1m30s", "orders.wait.30s, orders.wait.2m, orders.wait.10m", "when it is due"},
			[]string{"is a replica consuming"},
		},
		"overdue": {
			dedup.Record{State: dedup.StateWaiting, Attempts: 1, Unknown: 1, EverUnknown: true, NotBefore: now.Add(-time.Second)},
			[]string{"last outcome     unknown", "It is due", "is a replica consuming"},
			nil,
		},
		"done": {
			dedup.Record{State: dedup.StateDone, Attempts: 2, At: now.Add(-time.Hour), Status: 201},
			[]string{"done, HTTP status 201", "1h0m0s ago", "in no queue"},
			[]string{"dead", "lease"},
		},
		"done, recorded late": {dedup.Record{State: dedup.StateDone, Attempts: 1, At: now}, []string{"last outcome     done\n"}, nil},
		"dead for good": {
			dedup.Record{
				State: dedup.StateDead, Attempts: 1, Unknown: 1, EverUnknown: true, At: now, NotBefore: now.Add(time.Minute),
				Reason: dedup.ReasonUnknownOutcome, DeadID: "0123456789abcdef",
			},
			[]string{"dead-lettered: unknown-outcome", "0123456789abcdef", "orders.dead", "Only that letter", "not before", "in 1m0s"},
			nil,
		},
		"dead for a moment": {
			dedup.Record{State: dedup.StateDead, Attempts: 1, At: now, NotBefore: now, Reason: dedup.ReasonRejected, DeadID: "0123456789abcdef"},
			[]string{"rejected", "on its way there"},
			[]string{"not before", "Only that letter"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, s := storyOf(t, c.record, 47*time.Hour)
			text := s.text(q)
			for _, w := range append(c.words, "queue orders, message ID one (message-id)", "rabbitonce:shop/orders:one", "in 47h0m0s; each change makes it 48h") {
				if !strings.Contains(text, w) {
					t.Errorf("the story does not say %q:\n%s", w, text)
				}
			}
			for _, w := range c.not {
				if strings.Contains(text, w) {
					t.Errorf("the story says %q:\n%s", w, text)
				}
			}
		})
	}
}

func TestWhereaboutsFollowTheSettings(t *testing.T) {
	dead := dedup.Record{State: dedup.StateDead, Reason: dedup.ReasonRejected, DeadID: "0123456789abcdef"}
	unknown := dead
	unknown.EverUnknown = true
	waiting := dedup.Record{State: dedup.StateWaiting, NotBefore: storyTime()}
	for name, c := range map[string]struct {
		setting   string
		record    dedup.Record
		word, not string
	}{
		"rejected":          {"DEADLETTER_MODE=reject", dead, "dead-letter exchange of orders", "0123456789abcdef"},
		"rejected, unknown": {"DEADLETTER_MODE=reject", unknown, "`rabbitonce forget` opens", "orders.dead"},
		"in order":          {"ORDERING=queue", waiting, "(ORDERING)", "orders.wait"},
	} {
		q := mustLoad(t, four(c.setting)).Queues[0]
		if where := whereabouts(q, c.record, storyTime()); !strings.Contains(where, c.word) || strings.Contains(where, c.not) {
			t.Errorf("%s: %s", name, where)
		}
	}
	q := mustLoad(t, four("DEADLETTER_MODE=reject")).Queues[0]
	if text := nothingRecorded(q); strings.Contains(text, "orders.dead") {
		t.Error(text)
	}
}

func TestStoryWithoutExpiry(t *testing.T) {
	q, s := storyOf(t, dedup.Record{State: dedup.StateDone, At: storyTime()}, 0)
	if text := s.text(q); s.Expires != nil || !strings.Contains(text, "+pttl") {
		t.Error(text)
	}
}

func TestStoryOfAForeignKey(t *testing.T) {
	q := mustLoad(t, four()).Queues[0]
	s := tell(q, "one\n", recordPlace{source: "message-id", key: "k\x1b[2J", foreign: errors.New("garbage")})
	text := s.text(q)
	for _, w := range []string{`"one\n"`, `"k\x1b[2J"`, "foreign", "delete the key", "DEDUP_PREFIX"} {
		if !strings.Contains(text, w) {
			t.Errorf("the story does not say %q:\n%s", w, text)
		}
	}
	if strings.Contains(text, "attempts") {
		t.Errorf("a foreign key has no attempts:\n%s", text)
	}
}

func TestDecideForget(t *testing.T) {
	now := storyTime()
	soon, past := now.Add(time.Second), now.Add(-time.Second)
	for name, c := range map[string]struct {
		record             dedup.Record
		plain, force, done permission
	}{
		"lease":               {dedup.Record{State: dedup.StateProcessing, LeaseUntil: soon, Deadline: past}, atWork, mayForget, atWork},
		"request":             {dedup.Record{State: dedup.StateProcessing, LeaseUntil: past, Deadline: soon}, atWork, mayForget, atWork},
		"both over":           {dedup.Record{State: dedup.StateProcessing, LeaseUntil: past, Deadline: past}, mayForget, mayForget, mayForget},
		"waits":               {dedup.Record{State: dedup.StateWaiting, NotBefore: soon}, mayForget, mayForget, mayForget},
		"waits after unknown": {dedup.Record{State: dedup.StateWaiting, NotBefore: soon, EverUnknown: true}, atWork, mayForget, atWork},
		"overdue":             {dedup.Record{State: dedup.StateWaiting, NotBefore: past, EverUnknown: true}, mayForget, mayForget, mayForget},
		"done":                {dedup.Record{State: dedup.StateDone}, isDone, isDone, mayForget},
		"done, once unknown":  {dedup.Record{State: dedup.StateDone, EverUnknown: true}, isDone, isDone, mayForget},
		"dead":                {dedup.Record{State: dedup.StateDead, NotBefore: past, EverUnknown: true}, mayForget, mayForget, mayForget},
		"dead, request":       {dedup.Record{State: dedup.StateDead, NotBefore: soon, EverUnknown: true}, atWork, mayForget, atWork},
	} {
		seen := dedup.Sighting{Found: true, Record: c.record, Now: now}
		got := [...]permission{decideForget(seen, forgetOptions{}), decideForget(seen, forgetOptions{force: true}), decideForget(seen, forgetOptions{done: true})}
		if want := [...]permission{c.plain, c.force, c.done}; got != want {
			t.Errorf("%s: plain, --force, --done: %v, want %v", name, got, want)
		}
	}
}
