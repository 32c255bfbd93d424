package check

import "time"

// attempts: each request has the next number. A number without a request needs something that used it up: a claim whose
// holder was gone before it sent. Broker and service are no reason, and a process that ends gives its claims back unless the
// store is away.
func (c *checker) attempts(s *story) {
	last, life := 0, 0
	since := s.since()
	for _, r := range s.requests {
		if n := s.life(r); n != life {
			last, life, since = 0, n, s.lives[n-1]
		}
		switch {
		case r.Attempt > last:
			c.explain(s, AttemptSkipped, r.Attempt-last-1, since, r.Sent, describe(r))
			last = r.Attempt
		case s.strays[r]:
			continue // another had the next number by then
		default:
			c.violate(AttemptRepeated, s.id, "%s; after attempt %d", describe(r), last)
		}
		since = c.claimable(s, r)
	}
}

// since is when the first claim can have been.
func (s *story) since() time.Time {
	if s.original == nil {
		return time.Time{}
	}
	return s.original.At
}

// claimable is when the next claim after a request can have been: when it was answered, else at its deadline.
func (c *checker) claimable(s *story, r *Request) time.Time {
	if answeredFailed(r) {
		return c.ended(r)
	}
	return c.deadline(s, r).Add(-repeatSlack)
}

// explain holds numbers that were used up without a request against what happened in that time.
func (c *checker) explain(s *story, rule Rule, numbers int, from, to time.Time, what string) {
	if numbers <= 0 {
		return
	}
	causes := c.trouble.wasted(s.queue.Lease, from, to)
	if len(causes) < numbers {
		c.violate(rule, s.id, "%d too many, %d explained since %s: %s", numbers, len(causes), clock(from), what)
		return
	}
	for _, cause := range causes[:numbers] {
		c.remark(cause)
	}
}

// attemptsSpent: who is given up for its attempts had as many requests; the claim that found that may count as one more.
func (c *checker) attemptsSpent(s *story) {
	said, sent, since := 0, 0, s.since()
	for _, l := range s.letters {
		if l.Reason == reasonExhausted {
			said = max(said, l.Attempts)
		}
	}
	for _, r := range s.requests {
		if r.Attempt > sent {
			sent, since = r.Attempt, c.claimable(s, r)
		}
	}
	c.explain(s, AttemptSpent, said-sent-s.overcounted(), since, s.deadAt(), "letter attempts-exhausted")
}

// deadAt is when the last letter of an ID was decided; zero when the record does not say so, which explains nothing.
func (s *story) deadAt() time.Time {
	for i := len(s.writes) - 1; i >= 0; i-- {
		if s.writes[i].State == Dead {
			return s.writes[i].At
		}
	}
	return time.Time{}
}
