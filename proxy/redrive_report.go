package proxy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rabbitonce/dedup"
)

// redriveReport is how far a redrive got, as its summary tells; with --json in these names.
type redriveReport struct {
	Queue           string         `json:"queue"`
	DeadLetterQueue string         `json:"dead_letter_queue"`
	DryRun          bool           `json:"dry_run"`
	Letters         int            `json:"letters"`      // that were there at the start
	LookedAt        int            `json:"looked_at"`    // of them
	PutBack         int            `json:"put_back"`     // in a dry run: would have been
	ByReason        map[string]int `json:"by_reason"`    // of those put back
	OtherQueues     int            `json:"other_queues"` // letters that are not this queue's
	NotSelected     int            `json:"not_selected"` // letters of this queue that were not asked for
	DiedSince       int            `json:"died_since"`   // letters that came after the start and were met; they stay
	MovedToEnd      int            `json:"moved_to_end"` // of the letters that stay
	UnknownOutcome  int            `json:"unknown_outcome"`
	RecordsExpired  int            `json:"records_expired"` // of those of unknown outcome
	ByBroker        int            `json:"by_broker"`
	HeadersLeftOut  int            `json:"headers_left_out"`
	IDsNotFound     []string       `json:"ids_not_found"`
	Error           string         `json:"error,omitempty"`

	found map[string]bool // IDs that were put back
}

func newRedriveReport(queue, deadLetterQueue string, dry bool) redriveReport {
	return redriveReport{
		Queue: queue, DeadLetterQueue: deadLetterQueue, DryRun: dry, ByReason: map[string]int{}, IDsNotFound: []string{}, found: map[string]bool{},
	}
}

// count notes a letter that was put back, or would be.
func (r *redriveReport) count(l deadLetter, retention time.Duration) {
	r.PutBack++
	r.ByReason[l.reason]++
	r.found[l.id] = true
	if l.reason == dedup.ReasonUnknownOutcome.String() {
		r.UnknownOutcome++
		if !l.deadAt.IsZero() && time.Since(l.deadAt) > retention {
			r.RecordsExpired++
		}
	}
	if l.byBroker {
		r.ByBroker++
	}
	if l.leftOut {
		r.HeadersLeftOut++
	}
}

// missing are the IDs that were asked for and not found.
func (r *redriveReport) missing(asked []string) []string {
	missing := []string{}
	for _, id := range asked {
		if !r.found[id] {
			missing = append(missing, id)
		}
	}
	return missing
}

// write is the summary for people.
func (r *redriveReport) write(w io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	verb := "put back"
	if r.DryRun {
		verb = "would be put back"
	}
	line("looked at: %d of the %d letters of %s", r.LookedAt, r.Letters, r.DeadLetterQueue)
	line("%s to %s: %d%s", verb, r.Queue, r.PutBack, r.reasons())
	if n := r.OtherQueues + r.NotSelected; n > 0 {
		line("left where they are: %d (of other queues %d, not selected %d)", n, r.OtherQueues, r.NotSelected)
	}
	if r.DiedSince > 0 {
		line("died since the start, and left too: %d", r.DiedSince)
	}
	if r.MovedToEnd > 0 {
		line("moved to the end of %s: %d of those that stay", r.DeadLetterQueue, r.MovedToEnd)
	}
	if r.UnknownOutcome > 0 {
		line("of unknown outcome: %d; the work may have been done already, and the next POST says Delivery-Outcome-Unknown: true", r.UnknownOutcome)
	}
	if r.RecordsExpired > 0 {
		line("of these, died longer than DEDUP_RETENTION ago: %d; the record is gone, and the next POST does not say so", r.RecordsExpired)
	}
	if r.ByBroker > 0 {
		line("dead-lettered by the broker, without a dead-id: %d; where the record is closed the message dies again, until rabbitonce forget %s ID", r.ByBroker, r.Queue)
	}
	if r.HeadersLeftOut > 0 {
		line("without some of their headers, which did not fit into the letter: %d; %sleft-out names them", r.HeadersLeftOut, headerPrefix)
	}
	for _, id := range r.IDsNotFound {
		line("not found: %s", lineID(id))
	}
}

// reasons lists how many had which reason, like " (conflict 1, rejected 7)".
func (r *redriveReport) reasons() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(r.ByReason)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, r.ByReason[reason]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// letterLine is a letter in the list of a dry run.
type letterLine struct {
	ID       string `json:"id"`
	Reason   string `json:"reason"`
	Attempts *int64 `json:"attempts"` // null when the letter does not tell
	DeadAt   string `json:"dead_at"`  // RFC 3339; "" when the letter does not tell
	DeadID   string `json:"dead_id"`  // "" when it has none
}

func lineOf(l deadLetter) letterLine {
	line := letterLine{ID: l.id, Reason: l.reason}
	line.DeadID, _ = l.Headers[headerPrefix+"dead-id"].(string)
	if l.attempts >= 0 {
		line.Attempts = &l.attempts
	}
	if !l.deadAt.IsZero() {
		line.DeadAt = l.deadAt.UTC().Format(time.RFC3339)
	}
	return line
}

// letterColumns are the columns of String.
const letterColumns = "DEAD AT               REASON                 ATTEMPTS  ID"

func (l letterLine) String() string {
	attempts := "-"
	if l.Attempts != nil {
		attempts = strconv.FormatInt(*l.Attempts, 10)
	}
	at := l.DeadAt
	if at == "" {
		at = "-"
	}
	return fmt.Sprintf("%-20s  %-21s  %8s  %s", at, l.Reason, attempts, lineID(l.ID))
}

// lineID is an ID as a line of text shows it: quoted where it would not stay one word of one line.
func lineID(id string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == unicode.ReplacementChar }
	switch {
	case id == "":
		return "(no ID)"
	case strings.ContainsFunc(id, odd):
		return strconv.Quote(id)
	}
	return id
}
