package check

import (
	"slices"
	"time"
)

// lookupTime is how long after a lookup the request that it allows is sent.
const lookupTime = time.Second

// atOnce: the service never works on two requests of an ID at once.
func (c *checker) atOnce(s *story) {
	var arrived, open []*Request
	for _, r := range s.requests {
		if r.Arrived() {
			arrived = append(arrived, r)
		}
	}
	slices.SortStableFunc(arrived, func(a, b *Request) int { return a.Began.Compare(b.Began) })
	for _, r := range arrived {
		open = slices.DeleteFunc(open, func(o *Request) bool { return !c.ended(o).After(r.Began) })
		for _, o := range open {
			if o.Sent.After(r.Sent) {
				c.judgeAtOnce(s, r, o)
			} else {
				c.judgeAtOnce(s, o, r)
			}
		}
		open = append(open, r)
	}
}

func (c *checker) judgeAtOnce(s *story, earlier, later *Request) {
	past := !later.Sent.Before(c.deadline(s, earlier).Add(-deadlineSlack))
	told := later.Unknown || s.queue.Policy == Lookup && c.arrivedLate(s, earlier)
	switch {
	case s.strays[earlier] || s.strays[later]:
		c.remark(AtOnceStopped)
	case past && told:
		c.remark(AtOncePastDeadline)
	default:
		c.violate(AtOnce, s.id, "%s; and %s", describe(earlier), describe(later))
	}
}

// arrivedLate tells whether the network kept a request until its deadline had passed: a lookup could not know of it.
func (c *checker) arrivedLate(s *story, r *Request) bool {
	return !r.Began.Before(c.deadline(s, r).Add(-deadlineSlack))
}

// unflagged: after a request whose outcome was not known to be a failure every other is flagged, and after one that is
// flagged; and so is each whose record says so. With a lookup the service may have said that there was no work, and under
// deadletter there is no other at all.
func (c *checker) unflagged(s *story) {
	var doubt *Request
	for i, r := range s.requests {
		if i > 0 && (s.requests[i-1].Unknown || !c.failedWhole(s.requests[i-1], r.Sent)) {
			doubt = s.requests[i-1]
		}
		switch {
		case r.Unknown || s.strays[r] || s.queue.Policy == DeadLetter:
		case doubt != nil && s.queue.Policy == Retry:
			c.violate(Unflagged, s.id, "%s; after %s", describe(r), describe(doubt))
		case c.claimUnknown(s, r):
			c.violate(Unflagged, s.id, "%s, though its record said unknown", describe(r))
		}
	}
}

// claimUnknown tells whether the claim that a request was sent under said that an outcome is unknown.
func (c *checker) claimUnknown(s *story, r *Request) bool {
	i := s.claim(r)
	return i >= 0 && s.writes[i].Unknown
}

// secondPost: under deadletter nothing is sent after an outcome that is unknown.
func (c *checker) secondPost(s *story) {
	if s.queue.Policy != DeadLetter {
		return
	}
	for i, r := range s.requests {
		switch {
		case r.Unknown || c.claimUnknown(s, r):
			c.violate(SecondPost, s.id, "%s, though an outcome is unknown", describe(r))
		case i > 0 && !c.failedWhole(s.requests[i-1], r.Sent):
			c.violate(SecondPost, s.id, "%s; after %s", describe(r), describe(s.requests[i-1]))
		}
	}
}

// onceUnderLookup: with a lookup nothing is sent after the work was done, and it is done once.
func (c *checker) onceUnderLookup(s *story) {
	if s.queue.Policy != Lookup {
		return
	}
	var worked []*Request
	for _, r := range s.requests {
		c.judgeLookup(s, r, worked)
		if r.Worked {
			worked = append(worked, r)
		}
	}
}

func (c *checker) judgeLookup(s *story, r *Request, worked []*Request) {
	excused := false
	for _, w := range worked {
		switch {
		case !r.Worked && !c.ended(w).Before(r.Sent):
		case s.strays[r]: // counted as that
		case c.arrivedLate(s, w) && r.Sent.Before(w.Began.Add(lookupTime)):
			excused = true
		default:
			c.violate(TwiceLookup, s.id, "%s; after %s", describe(r), describe(w))
			return
		}
	}
	if excused {
		c.remark(LookupTooSoon)
	}
}

// tooEarly: a request whose outcome is unknown is not repeated before its deadline. It is unknown when there was no whole
// answer that says failed, and also when the program flags the next and did not flag this one: the answer did not come back,
// or a claim between the two was lost. One that was flagged before tells nothing, since the flag stays.
func (c *checker) tooEarly(s *story) {
	for i := 1; i < len(s.requests); i++ {
		before, r := s.requests[i-1], s.requests[i]
		unknown := !c.failedWhole(before, r.Sent) || r.Unknown && !before.Unknown
		earliest := c.deadline(s, before).Add(-repeatSlack)
		if unknown && r.Sent.Before(earliest) && !s.strays[r] {
			c.violate(TooEarly, s.id, "%s; not before %s, after %s", describe(r), clock(earliest), describe(before))
		}
	}
}
