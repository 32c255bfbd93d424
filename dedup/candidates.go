package dedup

import (
	"errors"
	"fmt"
	"slices"
)

// Candidates are the IDs under which a message may be recorded of which a person knows the value, but not where it was
// found: one for each place that DEDUP_ID_FROM and DEDUP_ON_MISSING_ID name, in their order.
func (c *QueueConfig) Candidates(value string) []ID {
	var all []ID
	for _, entry := range c.IDFrom.entries {
		all = append(all, c.IDFrom.idFrom(entry.text, value))
	}
	if hashed := c.IDFrom.idFrom(sourceHash, value); c.OnMissingID == MissingHash && !slices.Contains(all, hashed) {
		all = append(all, hashed)
	}
	return all
}

// Candidate is the ID of a message whose value was found in one place, named as in DEDUP_ID_FROM. It need not be
// listed there: it may have been when the message was claimed.
func (c *QueueConfig) Candidate(source, value string) (ID, error) {
	if _, problem := finder(source); problem != "" {
		return ID{}, errors.New(problem)
	}
	return c.IDFrom.idFrom(source, value), nil
}

// idFrom is what Identify returns when this place gives the value.
func (s Sources) idFrom(source, value string) ID {
	if len(s.entries) > 0 && s.entries[0].text == source {
		return ID{Value: value}
	}
	return ID{Source: source, Value: value}
}

// Place names where an ID was found, as in DEDUP_ID_FROM.
func (c *QueueConfig) Place(id ID) string {
	if id.Source == "" && len(c.IDFrom.entries) > 0 {
		return c.IDFrom.entries[0].text
	}
	return id.Source
}

// CheckID tells whether a text can be an ID at all.
func CheckID(value string) error {
	if blank(value) {
		return fmt.Errorf("%q is no message ID: empty ones, and those of white space alone, count as missing", value)
	}
	return nil
}
