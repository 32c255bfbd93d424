package check

import "time"

// lettersChanged: a letter has the payload that was published; one for a conflict has that of the conflict.
func (c *checker) lettersChanged(s *story) {
	for _, l := range s.letters {
		if !isConflict(l) && s.original != nil && l.Payload != s.original.Payload {
			c.violate(LetterChanged, s.id, "letter %s: %+v, published %+v", l.Reason, l.Payload, s.original.Payload)
		}
		if isConflict(l) && len(s.conflicts) > 0 && !s.hasConflict(l.Payload) {
			c.violate(LetterChanged, s.id, "letter %s: %+v, published by none that is a conflict", l.Reason, l.Payload)
		}
	}
}

func (s *story) hasConflict(payload Payload) bool {
	for _, p := range s.conflicts {
		if p.Payload == payload {
			return true
		}
	}
	return false
}

// lettersReason: a letter's reason is what the service had in mind, or an outcome that nobody can know.
func (c *checker) lettersReason(s *story) {
	for _, l := range s.letters {
		switch {
		case isConflict(l):
			if s.sent > 0 && len(s.conflicts) == 0 {
				c.violate(LetterReason, s.id, "conflict, but every publication has the same payload")
			}
		case s.original != nil:
			c.judgeLetter(s, l)
		}
	}
}

func (c *checker) judgeLetter(s *story, l *Letter) {
	destined := s.destined(l)
	cause, open := c.unknownOutcome(s, l)
	done := len(s.writes) > 0 && s.writes[len(s.writes)-1].State == Done
	switch {
	case destined:
	case open && done:
		c.remark(UnknownThoughDone)
	case open:
		c.remark(cause)
	case done && s.worked() > 0:
		c.violate(LetterNeedless, s.id, "letter %s, recorded done %s", l.Reason, clock(s.writes[s.done()].At))
	default:
		c.violate(LetterReason, s.id, "letter %s after %d attempts", l.Reason, l.Attempts)
	}
}

// destined tells whether a letter is what the service had in mind. Deferred attempts come on top of the most, and one that was
// claimed to find that it is one too many: a letter that is published again counts it.
func (s *story) destined(l *Letter) bool {
	switch s.original.Destiny {
	case ToBeRejected:
		return l.Reason == reasonRejected
	case ToExhaust:
		return l.Reason == reasonExhausted && l.Attempts >= s.queue.MaxAttempts && l.Attempts <= s.queue.MaxAttempts+s.deferred()+s.overcounted()
	case ToBeDone:
	}
	return false
}

// overcounted is 1 when the record died by a claim under which nothing was sent.
func (s *story) overcounted() int {
	sent := 0
	for _, r := range s.requests {
		sent = max(sent, r.Attempt)
	}
	for _, w := range s.writes {
		if w.State == Dead && w.Attempts > sent {
			return 1
		}
	}
	return 0
}

func (s *story) deferred() int {
	n := 0
	for _, r := range s.requests {
		switch r.Status {
		case 409, 425, 429, 503:
			n++
		}
	}
	return n
}

// unknownOutcome tells why an outcome can be unknown that a letter says is. With retries only that of the last attempt ends so.
func (c *checker) unknownOutcome(s *story, l *Letter) (Remark, bool) {
	if !isUnknown(l) {
		return "", false
	}
	switch s.queue.Policy {
	case DeadLetter:
		for _, r := range s.requests {
			if cause, open := c.unknownRequest(s, r); open {
				return cause, true
			}
		}
		if c.lostOnWire(s, 0) {
			return UnknownWire, true
		}
		lost := c.trouble.wasted(s.queue.Lease, s.since(), s.deadAt())
		return UnknownClaim, len(lost) > 0
	case Retry:
		if s.original.Destiny != ToExhaust || len(s.requests) == 0 {
			return "", false
		}
		last := s.requests[len(s.requests)-1]
		if c.lostOnWire(s, s.queue.MaxAttempts) {
			return UnknownWire, true
		}
		_, open := c.unknownRequest(s, last)
		return UnknownLastAttempt, open && last.Attempt >= s.queue.MaxAttempts
	case Lookup:
	}
	return "", false
}

// unknownRequest tells why the outcome of a request can be unknown: there was no answer in time, or something came between it
// and the program, or the program itself was gone, or may have lost its lease, of which a third may be over when it is renewed.
func (c *checker) unknownRequest(s *story, r *Request) (Remark, bool) {
	deadline := c.deadline(s, r)
	if answeredUnknown(r) || c.ended(r).After(deadline.Add(-deadlineSlack)) {
		return UnknownRequest, true
	}
	gone, _ := c.trouble.endOf(r.Process)
	lost := between(gone, r.Sent, deadline) ||
		c.trouble.serviceAway(r.Process, r.Sent, deadline) ||
		c.trouble.storeAway(r.Process, 0, r.Sent, deadline) ||
		c.trouble.stopped(r.Process, s.queue.Lease/2, r.Sent, deadline) || c.stoppedAt(r, deadline)
	return UnknownLost, lost
}

// lostOnWire tells whether the last claim, of at least that many attempts, was for a request that the journal of the network
// may have missed: nothing was seen of it, its outcome was unknown, and the service's network or the service failed meanwhile.
func (c *checker) lostOnWire(s *story, least int) bool {
	for i := 1; i < len(s.writes); i++ {
		claim, dead := s.writes[i-1], s.writes[i]
		if claim.State == Processing && dead.State == Dead && dead.Unknown && claim.Attempts >= least && !s.sentAs(claim.Attempts) &&
			(!claim.Unknown || s.queue.Policy == Retry) { // under deadletter nothing is sent after an unknown outcome
			return c.trouble.serviceAway("", claim.At.Add(-storeSlack), dead.At.Add(storeSlack))
		}
	}
	return false
}

func (s *story) sentAs(attempt int) bool {
	for _, r := range s.requests {
		if r.Attempt == attempt {
			return true
		}
	}
	return false
}

// stoppedAt tells whether the deadline of a request passed while its process was stopped: it may not have read the answer.
func (c *checker) stoppedAt(r *Request, deadline time.Time) bool {
	for _, stop := range c.trouble.stops(r.Process) {
		if stop.overlaps(deadline.Add(-repeatSlack), deadline) {
			return true
		}
	}
	return false
}

// lettersRepeated counts letters that are there more than once, which is allowed.
func (c *checker) lettersRepeated(s *story) {
	seen := map[Letter]bool{}
	for _, l := range s.letters {
		if seen[*l] {
			c.remark(LetterRepeated)
		}
		seen[*l] = true
	}
}
