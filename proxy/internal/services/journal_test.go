package services

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// line is what the service wrote down: that it has read a request, or that it has done the work of one.
type line struct {
	Event   string // received or worked
	Key     string // Idempotency-Key
	Attempt string // Delivery-Attempt
	Unknown bool   // Delivery-Outcome-Unknown: true
	Length  int    // of the body
	SHA256  string // of the body, hexadecimal
	PID     int    // of the process that served it

	Headers map[string]string // of what was received, by their names in lower case
}

const (
	received = "received"
	worked   = "worked"
)

// journal is the file that all processes of one server append to.
type journal struct{ path string }

// lines returns what was written so far, in order.
func (j journal) lines() ([]line, error) {
	content, err := os.ReadFile(j.path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	var all []line
	for text := range bytes.Lines(whole) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("read journal: %w: %q", err, text)
		}
		all = append(all, l)
	}
	return all, nil
}

// story is what the journal says of one key.
type story struct {
	requests []line
	works    []line
}

func (s story) String() string {
	text := fmt.Sprintf("%d requests, %d executions", len(s.requests), len(s.works))
	for _, l := range slices.Concat(s.requests, s.works) {
		text += fmt.Sprintf("; %s attempt %s, unknown %t, by process %d", l.Event, l.Attempt, l.Unknown, l.PID)
	}
	return text
}

// stories returns the journal by key.
func (j journal) stories() (map[string]story, error) {
	lines, err := j.lines()
	all := map[string]story{}
	for _, l := range lines {
		s := all[l.Key]
		if l.Event == received {
			s.requests = append(s.requests, l)
		} else {
			s.works = append(s.works, l)
		}
		all[l.Key] = s
	}
	return all, err
}
