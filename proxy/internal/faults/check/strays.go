package check

// stray is a request that left a process after a stop longer than its lease, while another held the record by then. The look
// at the lease and the first byte are two steps: a process that is stopped between them, for microseconds, cannot know.
type stray struct {
	id      ID
	request *Request
}

// mostStrays is how many of them a run can meet by chance. A program that does not look at its lease has more.
const mostStrays = 1

func (c *checker) findStrays(s *story) {
	for _, r := range s.requests {
		if c.isStray(s, r) {
			s.strays[r] = true
			c.strays = append(c.strays, stray{s.id, r})
			c.remark(Stray)
		}
	}
}

func (c *checker) isStray(s *story, r *Request) bool {
	stop, woke := c.trouble.wokeTo(r)
	if !woke || stop.length() < s.queue.Lease || !s.claimedBefore(r, stop.From) {
		return false
	}
	for _, w := range s.writes[s.claim(r)+1:] {
		if w.State != Absent && !w.At.After(r.Sent.Add(storeSlack)) {
			return true // it was not r's claim any more
		}
	}
	return false
}

func (c *checker) strayLimit() {
	if len(c.strays) <= mostStrays {
		return
	}
	for _, s := range c.strays {
		c.violate(Strays, s.id, "more than %d in a run: %s", mostStrays, describe(s.request))
	}
}
