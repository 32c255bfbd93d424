package check

// neverPublished: what the program worked on or wrote is of an ID that was published.
func (c *checker) neverPublished(s *story) {
	if s.sent > 0 {
		return
	}
	for _, r := range s.requests {
		c.violate(NeverPublished, s.id, "%s", describe(r))
	}
	for _, l := range s.letters {
		c.violate(NeverPublished, s.id, "letter %s", l.Reason)
	}
}

// lost: what was confirmed to the publisher was worked on, or is in a letter, or still there. Whether the letter is right is
// another rule. A conflict is never worked on: a letter has it.
func (c *checker) lost(s *story) {
	if len(s.left) > 0 {
		return
	}
	if s.published > 0 && s.worked() == 0 && !s.letter(noConflict) {
		c.violate(Lost, s.id, "published %s: no request worked on it, and there is no letter", clock(s.original.At))
	}
	for _, p := range s.conflicts {
		carries := func(l *Letter) bool { return isConflict(l) && l.Payload == p.Payload }
		if p.Confirmed && !s.letter(carries) {
			c.violate(LostConflict, s.id, "conflict published %s: no letter has its payload", clock(p.At))
		}
	}
}

// left: at the end nothing lies in a queue.
func (c *checker) left(s *story) {
	for _, l := range s.left {
		c.violate(LeftBehind, s.id, "in %s", l.In)
	}
}
