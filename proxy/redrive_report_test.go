package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// fullReport is the report about letters of every kind.
func fullReport() *redriveReport {
	r := newRedriveReport("orders", "orders.dead", false)
	r.Letters, r.LookedAt, r.OtherQueues, r.NotSelected, r.MovedToEnd, r.DiedSince = 9, 7, 1, 2, 1, 3
	for _, l := range []deadLetter{
		{reason: "rejected", id: "a", deadAt: time.Now().Add(-3 * time.Hour)},
		{reason: "unknown-outcome", id: "b", deadAt: time.Now()},
		{reason: "unknown-outcome", id: "c", deadAt: time.Now().Add(-3 * time.Hour), leftOut: true},
		{reason: "broker-rejected", id: "d", byBroker: true},
	} {
		r.count(l, 2*time.Hour)
	}
	r.IDsNotFound = r.missing([]string{"a", "e e", "d"})
	return &r
}

func TestRedriveSummary(t *testing.T) {
	var text bytes.Buffer
	fullReport().write(&text)
	want := `looked at: 7 of the 9 letters of orders.dead
put back to orders: 4 (broker-rejected 1, rejected 1, unknown-outcome 2)
left where they are: 3 (of other queues 1, not selected 2)
died since the start, and left too: 3
moved to the end of orders.dead: 1 of those that stay
of unknown outcome: 2; the work may have been done already, and the next POST says Delivery-Outcome-Unknown: true
of these, died longer than DEDUP_RETENTION ago: 1; the record is gone, and the next POST does not say so
dead-lettered by the broker, without a dead-id: 1; where the record is closed the message dies again, until rabbitonce forget orders ID
without some of their headers, which did not fit into the letter: 1; x-rabbitonce-left-out names them
not found: "e e"
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestRedriveJSON(t *testing.T) {
	var text bytes.Buffer
	out := &redriveOutput{out: &text, json: true}
	out.letter(deadLetter{
		delivery: &delivery{Headers: amqp.Table{"x-rabbitonce-dead-id": "00"}}, id: "a", reason: "rejected", attempts: 2, deadAt: time.Unix(1700000000, 0),
	})
	out.letter(deadLetter{delivery: &delivery{}, id: "b", reason: "broker-expired", attempts: -1})
	empty := newRedriveReport("orders", "orders.dead", true)
	if err := out.summary(&empty); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	want := []string{
		`{"letter":{"id":"a","reason":"rejected","attempts":2,"dead_at":"2023-11-14T22:13:20Z","dead_id":"00"}}`,
		`{"letter":{"id":"b","reason":"broker-expired","attempts":null,"dead_at":"","dead_id":""}}`,
	}
	if diff := cmp.Diff(want, lines[:2]); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	var last struct{ Summary map[string]any }
	if err := json.Unmarshal([]byte(lines[2]), &last); err != nil || last.Summary["queue"] != "orders" || last.Summary["put_back"] != 0.0 || last.Summary["ids_not_found"] == nil {
		t.Errorf("summary %s (%v)", lines[2], err)
	}
}

func TestLineID(t *testing.T) {
	for id, want := range map[string]string{
		"order-1": "order-1", "ä%:": "ä%:", "": "(no ID)", "a b": `"a b"`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`,
	} {
		if got := lineID(id); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}
