package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// text is the story as lines for people.
func (s story) text(q QueueConfig) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	at := func(name string, t *time.Time, note string) {
		if t != nil {
			line(name, "%s, %s%s", t.Format(time.RFC3339), distanceOf(*t, *s.Now), note)
		}
	}
	fmt.Fprintf(&b, "queue %s, message ID %s (%s)\n", s.Queue, printable(s.ID), s.Source)
	line("state", "%s", s.State)
	if s.State != "foreign" {
		line("attempts", "%d, %d of them deferred, %d with an unknown outcome", s.Attempts, s.Deferred, s.Unknown)
		line("last outcome", "%s", s.LastOutcome)
		if s.EverUnknown {
			line("ever unknown", "yes: later requests are flagged Delivery-Outcome-Unknown: true")
		} else {
			line("ever unknown", "no")
		}
	}
	at("first claimed", s.FirstClaimed, "")
	at("lease until", s.LeaseUntil, "")
	at("request until", s.RequestDeadline, " at the latest")
	at("not before", s.NotBefore, "")
	at("done", s.DoneAt, "")
	at("dead", s.DeadAt, "")
	if s.DeadID != "" {
		line("dead-id", "%s", s.DeadID)
	}
	switch {
	case s.Expires != nil:
		at("record expires", s.Expires, "; each change makes it "+shortDuration(q.Dedup.Retention))
	case s.State != "foreign":
		line("record expires", "%s after its last change (the store does not tell this user when: allow +pttl)", shortDuration(q.Dedup.Retention))
	}
	line("key", "%s", printable(s.Key))
	line("where", "%s", s.Where)
	return b.String()
}

// printable is an ID or a key on one line of a terminal.
func printable(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted
}

// distanceOf says how far a time is from now.
func distanceOf(t, now time.Time) string {
	d := t.Sub(now)
	if d > 0 {
		return "in " + d.Round(time.Second).String()
	}
	return (-d).Round(time.Second).String() + " ago"
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// stories tells of all places that hold something.
func (q *recordQuery) stories(found []recordPlace) []story {
	all := make([]story, 0, len(found))
	for _, p := range found {
		all = append(all, tell(q.queue, q.id, p))
	}
	return all
}

// placesText lists where was looked.
func placesText(all []recordPlace) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "  %-24s key %s\n", p.source, printable(p.key))
	}
	return b.String()
}
