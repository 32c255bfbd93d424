package check

import "time"

// lastWords is how long before its end a process tried to write for the last time.
const lastWords = 3 * time.Second

// afterDone: a recorded success stays, and nothing is sent after it.
func (c *checker) afterDone(s *story) {
	done := s.done()
	if done < 0 {
		return
	}
	at := s.writes[done].At
	for _, w := range s.writes[done+1:] {
		if w.State != Done {
			c.violate(AfterDone, s.id, "recorded %s, done %s", w.State, clock(at))
		}
	}
	for _, r := range s.requests {
		switch {
		case !r.Sent.After(at.Add(storeSlack)) || s.strays[r]:
		case c.overtaken(s, r, done):
			c.remark(AfterDoneOvertaken)
		default:
			c.violate(AfterDone, s.id, "%s; done %s", describe(r), clock(at))
		}
	}
}

// overtaken tells whether the success of an earlier request was recorded between a request's claim and the request itself,
// which its lease bounds: its holder had been stopped past its lease, or could not reach the store for so long.
func (c *checker) overtaken(s *story, r *Request, done int) bool {
	at := s.writes[done].At
	if !r.Unknown || s.claim(r) < 0 || !r.Sent.Before(at.Add(s.queue.Lease)) {
		return false
	}
	for _, e := range s.requests {
		if e.Worked && (c.trouble.stopped(e.Process, s.queue.Lease, e.Sent, at) ||
			c.trouble.storeAway(e.Process, s.queue.Lease-time.Second, e.Sent, at)) {
			return true
		}
	}
	return false
}

// unrecorded: what was worked on is recorded, unless it went to a letter.
func (c *checker) unrecorded(s *story) {
	if s.worked() == 0 || s.done() >= 0 || len(s.left) > 0 || s.letter(noConflict) {
		return
	}
	for _, r := range s.requests {
		if r.Worked && c.couldNotRecord(s, r) {
			c.remark(UnrecordedStore)
			return
		}
	}
	c.violate(Unrecorded, s.id, "%d requests worked on it", s.worked())
}

// couldNotRecord tells whether the store was away after a request until it was acknowledged without a record, which is after
// a lease or at SIGTERM, and its process ended before it could make up for it.
func (c *checker) couldNotRecord(s *story, r *Request) bool {
	at, killed := c.trouble.endOf(r.Process)
	if !at.After(c.ended(r)) {
		return false
	}
	if c.trouble.storeAway(r.Process, s.queue.Lease-time.Second, r.Sent, c.ended(r).Add(2*s.queue.Lease)) {
		return true
	}
	return !killed && c.trouble.storeAway(r.Process, 0, at.Add(-lastWords), at)
}
