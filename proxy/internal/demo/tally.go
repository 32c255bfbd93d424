package main

import "slices"

// books is all that a side's figures are counted from.
type books struct {
	confirmed []string // the ID of each message that the broker confirmed, copies included
	charges   []string // the ID of each charge in the service's journal
	letters   []letter // what lies in the side's dead letters
}

// letter is a dead letter.
type letter struct {
	id, reason, status string
}

// reasonUnknown is the reason of dead letters whose work may have been done.
const reasonUnknown = "unknown-outcome"

// tally is one column of the table.
type tally struct {
	published, distinct, charges int

	twice   []string // charged more than once, in order of publishing
	lost    []string // confirmed by the broker, but neither charged nor in the dead letters
	letters []letter // one an ID and reason: dead letters are at least once
	person  []doubt  // dead letters that may have been charged: somebody has to look
}

// doubt is an order whose outcome the consumer does not know, and what whoever looks it up finds in the journal.
type doubt struct {
	id      string
	charges int
}

// kept tells whether the side did what it is there for.
func (t tally) kept() bool { return len(t.twice) == 0 && len(t.lost) == 0 }

// reasons returns the reason of each dead letter.
func (t tally) reasons() []string {
	var all []string
	for _, l := range t.letters {
		all = append(all, l.reason)
	}
	return all
}

func count(b books) tally {
	t := tally{published: len(b.confirmed), charges: len(b.charges)}
	charges := occurrences(b.charges)
	for _, l := range b.letters {
		if slices.ContainsFunc(t.letters, func(other letter) bool { return other.id == l.id && other.reason == l.reason }) {
			continue
		}
		t.letters = append(t.letters, l)
		if l.reason == reasonUnknown {
			t.person = append(t.person, doubt{id: l.id, charges: charges[l.id]})
		}
	}
	for _, id := range distinct(b.confirmed, b.charges) {
		if charges[id] > 1 {
			t.twice = append(t.twice, id)
		}
	}
	for _, id := range distinct(b.confirmed) {
		t.distinct++
		if charges[id] == 0 && !hasLetter(b.letters, id) {
			t.lost = append(t.lost, id)
		}
	}
	return t
}

func hasLetter(letters []letter, id string) bool {
	return slices.ContainsFunc(letters, func(l letter) bool { return l.id == id })
}

func occurrences(ids []string) map[string]int {
	n := map[string]int{}
	for _, id := range ids {
		n[id]++
	}
	return n
}

// distinct returns each ID once, in order of first appearance.
func distinct(lists ...[]string) []string {
	var all []string
	seen := map[string]bool{}
	for _, id := range slices.Concat(lists...) {
		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}
