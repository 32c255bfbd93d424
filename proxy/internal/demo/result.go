package main

import (
	"fmt"
	"slices"
	"strings"
)

// result is what became of one order on one side.
type result uint8

const (
	resultLost         result = iota // neither charged nor in the dead letters
	resultChargedTwice               // or more often
	resultPerson                     // in the dead letters: it may have been charged
	resultDead                       // in the dead letters, for another reason
	resultSkipped                    // delivered again, and charged once
	resultCharged                    // charged once
)

func (r result) String() string {
	return [...]string{"LOST", "CHARGED TWICE", "needs a person", "dead letter", "skipped", "charged"}[r]
}

// judge says what became of an order. again means that the side got it more than once.
func judge(b books, id string, again bool) result {
	charges := occurrences(b.charges)[id]
	switch {
	case charges > 1:
		return resultChargedTwice
	case slices.ContainsFunc(b.letters, func(l letter) bool { return l.id == id && l.reason == reasonUnknown }):
		return resultPerson
	case hasLetter(b.letters, id):
		return resultDead
	case charges == 0:
		return resultLost
	case again:
		return resultSkipped
	}
	return resultCharged
}

// verdict is the results of an event's orders on one side: the text for its column, and the worst of them for the colour.
type verdict struct {
	text  string
	worst result
}

func judgeAll(b books, ids []string, again bool) verdict {
	counts := map[result]int{}
	for _, id := range ids {
		counts[judge(b, id, again)]++
	}
	v := verdict{worst: resultCharged}
	var parts []string
	for r := resultLost; r <= resultCharged; r++ {
		switch n := counts[r]; {
		case n == 0:
			continue
		case len(ids) == 1:
			parts = append(parts, r.String())
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
		v.worst = min(v.worst, r)
	}
	v.text = strings.Join(parts, ", ")
	return v
}
