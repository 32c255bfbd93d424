package check

import "fmt"

// Violation is a promise that was broken.
type Violation struct {
	Rule Rule
	ID   ID
	Text string // what happened, with the times that show it
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s %s: %s", v.Rule, v.ID.Queue, v.ID.Value, v.Text)
}

// Rule names a promise.
type Rule string

// Report is what Check found.
type Report struct {
	Violations []Violation
	Remarks    map[Remark]int // how often each happened
}

// Remark names what the promises leave open, or what a run has to have met.
type Remark string
