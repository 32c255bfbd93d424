package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/proxy/internal/testkit"
)

// TestFateOfEachDelivery: at debug there is one line for each delivery, with its ID and how it ended, and never its body.
func TestFateOfEachDelivery(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.service.Behave(func(r testkit.Received) testkit.Action {
		if r.Key == "bad" {
			return testkit.Action{Status: 400}
		}
		return testkit.Action{}
	})
	b.publish(text("good", "PAYLOAD"), text("line\r\nbreak", "PAYLOAD"), text("bad", "PAYLOAD"), text("", "PAYLOAD"), text("é\xff", "PAYLOAD"))
	b.waitOutcomes(map[string]float64{"done": 3, "dead_letter": 2})
	b.publish(text("good", "PAYLOAD"))
	b.waitOutcomes(map[string]float64{"done": 3, "dead_letter": 2, "duplicate": 1})
	b.finish()
	var fates []string
	for _, line := range b.Logs.Find(func(l testkit.LogLine) bool { return l.Fields["fate"] != nil }) {
		if line.Fields["level"] != "DEBUG" || line.Fields["queue"] != b.queue {
			t.Errorf("the line of a delivery: %s", line.Text)
		}
		fates = append(fates, fmt.Sprint(line.Fields["id"], ": ", line.Fields["fate"]))
	}
	want := []string{"good: done", "line\r\nbreak: done", "bad: dead_letter", ": dead_letter", "é?: done", "good: duplicate"}
	if diff := cmp.Diff(want, fates, sorted()); diff != "" {
		t.Errorf("fates in the log (-want +got):\n%s", diff)
	}
	if strings.Contains(b.Logs.Text(), "PAYLOAD") {
		t.Error("a body is in the log")
	}
}

// TestDeadLetterInLog: a person who reads warnings alone sees each dead letter, and why.
func TestDeadLetterInLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"LOG_LEVEL": "warn"})
	b.answer(418, "a teapot")
	b.publish(text("one", "body"))
	b.letters(1)
	b.finish()
	lines := b.Logs.Find(func(l testkit.LogLine) bool { return l.Fields["reason"] != nil })
	if len(lines) != 1 {
		t.Fatalf("%d lines about dead letters", len(lines))
	}
	got := lines[0].Fields
	want := map[string]any{"level": "WARN", "id": "one", "queue": b.queue, "reason": "rejected", "attempts": 1.0, "status": 418.0}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	for _, line := range b.Logs.Lines() {
		if level := line.Fields["level"]; level != "WARN" && level != "ERROR" {
			t.Errorf("LOG_LEVEL=warn, and: %s", line.Text)
		}
	}
}

// TestLogFormatText writes lines that a person can read, one for each event, whatever an ID holds.
func TestLogFormatText(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"LOG_FORMAT": "text"})
	b.publish(text("line\r\nlevel=ERROR msg=forged", "body"))
	b.waitOutcomes(map[string]float64{"done": 1})
	b.finish()
	settled := 0
	for _, line := range b.Logs.Lines() {
		if !strings.HasPrefix(line.Text, "time=") || !strings.Contains(line.Text, " level=") {
			t.Errorf("not a line of text format: %q", line.Text)
		}
		if strings.Contains(line.Text, "fate=done") {
			settled++
		}
	}
	if settled != 1 {
		t.Errorf("%d lines tell the fate of one delivery", settled)
	}
}
