package check

// The rules.
const (
	NeverPublished  Rule = "never published"
	Lost            Rule = "lost"
	LostConflict    Rule = "lost conflict"
	LeftBehind      Rule = "left"
	AtOnce          Rule = "at once"
	AfterDone       Rule = "after done"
	Unflagged       Rule = "unflagged"
	SecondPost      Rule = "second post after unknown"
	TwiceLookup     Rule = "worked twice under lookup"
	TooEarly        Rule = "too early"
	AttemptRepeated Rule = "attempt repeated"
	AttemptSkipped  Rule = "attempt skipped"
	AttemptSpent    Rule = "attempt spent"
	Unrecorded      Rule = "unrecorded"
	LetterChanged   Rule = "letter changed"
	LetterReason    Rule = "letter reason"
	LetterNeedless  Rule = "letter needless"
	Strays          Rule = "strays"
)

// What the promises leave open.
const (
	AtOnceStopped      Remark = "at once: a process had been stopped past its lease right before it sent"
	AtOncePastDeadline Remark = "at once: the service worked on past its deadline"
	Stray              Remark = "sent by a process that was stopped past its lease between its look at the lease and the request"
	AfterDoneOvertaken Remark = "sent after done: the success was recorded between the claim and the request"
	LookupTooSoon      Remark = "worked twice under lookup: the request reached the service after its deadline"
	SkippedKilled      Remark = "attempt skipped: a process was killed"
	SkippedStopped     Remark = "attempt skipped: a process was stopped past its lease"
	SkippedStore       Remark = "attempt skipped: the store was away"
	SkippedTerminated  Remark = "attempt skipped: a process ended while the store was away"
	UnknownRequest     Remark = "letter unknown-outcome: a request was not answered"
	UnknownLost        Remark = "letter unknown-outcome: the answer may not have come back"
	UnknownClaim       Remark = "letter unknown-outcome: a claim may have been lost"
	UnknownWire        Remark = "letter unknown-outcome: the request may have been lost before the journal of the network saw it"
	UnknownThoughDone  Remark = "letter unknown-outcome: recorded done"
	UnknownLastAttempt Remark = "letter unknown-outcome: of the last attempt"
	LetterRepeated     Remark = "letter repeated"
	UnrecordedStore    Remark = "unrecorded: the store was away until the process ended"
)

// What a run has met.
const (
	Publications       Remark = "publications"
	IDs                Remark = "ids"
	DuplicatesStopped  Remark = "duplicates stopped"
	Requests           Remark = "requests"
	RequestsFlagged    Remark = "requests flagged"
	WorkedTwice        Remark = "work done twice"
	Outcomes           Remark = "outcomes unknown"
	OutcomeDoneLater   Remark = "outcomes unknown: done by a later request"
	OutcomeDone        Remark = "outcomes unknown: recorded done all the same"
	OutcomeLetter      Remark = "outcomes unknown: letter unknown-outcome"
	OutcomeOtherLetter Remark = "outcomes unknown: another letter"
	OutcomeOpen        Remark = "outcomes unknown: still unknown"
)

// LettersOf counts the letters of a reason.
func LettersOf(reason string) Remark { return Remark("letters: " + reason) }

// FaultsOf counts the faults of a kind.
func FaultsOf(kind string) Remark { return Remark("faults: " + kind) }

// InFlightOf counts the requests that faults of a kind have hit under way.
func InFlightOf(kind string) Remark { return Remark("in flight: " + kind) }

// The reasons of letters.
const (
	reasonRejected  = "rejected"
	reasonExhausted = "attempts-exhausted"
	reasonUnknown   = "unknown-outcome"
	reasonConflict  = "conflict"
)
