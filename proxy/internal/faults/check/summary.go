package check

// countStory counts what a run has met.
func (c *checker) countStory(s *story) {
	count := c.report.Remarks
	count[Publications] += s.sent
	if s.sent > 0 {
		count[IDs]++
	}
	count[DuplicatesStopped] += max(0, s.published-1)
	count[Requests] += len(s.requests)
	for i, r := range s.requests {
		if r.Unknown {
			count[RequestsFlagged]++
		}
		if answeredUnknown(r) {
			count[Outcomes]++
			count[s.became(i)]++
		}
	}
	if s.worked() > 1 {
		count[WorkedTwice]++
	}
	for _, l := range s.letters {
		count[LettersOf(l.Reason)]++
	}
}

// became is how it ended with a request whose outcome was unknown.
func (s *story) became(request int) Remark {
	for _, later := range s.requests[request+1:] {
		if later.Worked {
			return OutcomeDoneLater
		}
	}
	switch {
	case s.done() >= 0:
		return OutcomeDone
	case s.letter(isUnknown):
		return OutcomeLetter
	case s.letter(noConflict):
		return OutcomeOtherLetter
	}
	return OutcomeOpen
}

func (c *checker) countFaults(faults []Fault) {
	for _, f := range faults {
		c.report.Remarks[FaultsOf(f.Kind)]++
		c.report.Remarks[InFlightOf(f.Kind)] += f.InFlight
	}
}
