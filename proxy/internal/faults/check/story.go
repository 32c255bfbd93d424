package check

import "time"

// story is all that was written down about one ID.
type story struct {
	id        ID
	queue     Queue
	original  *Publication // the first that is no conflict
	conflicts []*Publication
	published int // confirmed, conflicts left out
	sent      int // publications, all
	requests  []*Request
	writes    []*Write
	letters   []*Letter
	left      []*Left

	strays map[*Request]bool
	lives  []time.Time // when the record began anew after a letter
}

// stories groups a history by ID, in the order of their first publications.
func stories(h *History) []*story {
	byID := map[ID]*story{}
	var all []*story
	of := func(id ID) *story {
		s := byID[id]
		if s == nil {
			s = &story{id: id, queue: h.Queues[id.Queue], strays: map[*Request]bool{}}
			byID[id] = s
			all = append(all, s)
		}
		return s
	}
	for i := range h.Publications {
		of(h.Publications[i].ID).addPublication(&h.Publications[i])
	}
	for i := range h.Requests {
		s := of(h.Requests[i].ID)
		s.requests = append(s.requests, &h.Requests[i])
	}
	for i := range h.Writes {
		s := of(h.Writes[i].ID)
		s.writes = append(s.writes, &h.Writes[i])
	}
	for i := range h.Letters {
		s := of(h.Letters[i].ID)
		s.letters = append(s.letters, &h.Letters[i])
	}
	for i := range h.Left {
		s := of(h.Left[i].ID)
		s.left = append(s.left, &h.Left[i])
	}
	for _, s := range all {
		s.lives = lives(s.writes)
	}
	return all
}

func (s *story) addPublication(p *Publication) {
	s.sent++
	if p.Conflict {
		s.conflicts = append(s.conflicts, p)
		return
	}
	if s.original == nil {
		s.original = p
	}
	if p.Confirmed {
		s.published++
	}
}

// lives is when a record that was deleted after its letter began anew. Only one whose outcome was never unknown is deleted
// then; any other that is deleted goes on, as far as its attempts are concerned.
func lives(writes []*Write) []time.Time {
	var starts []time.Time
	for i := 2; i < len(writes); i++ {
		dead := writes[i-2].State == Dead && !writes[i-2].Unknown
		if dead && writes[i-1].State == Absent && writes[i].State == Processing {
			starts = append(starts, writes[i].At)
		}
	}
	return starts
}

// life is the number of a request's life of its record.
func (s *story) life(r *Request) int {
	n := 0
	for n < len(s.lives) && !s.lives[n].After(r.Sent.Add(storeSlack)) {
		n++
	}
	return n
}

// claim is the last write of the claim that a request was sent under; -1: there is none.
func (s *story) claim(r *Request) int {
	for i := len(s.writes) - 1; i >= 0; i-- {
		w := s.writes[i]
		if w.State == Processing && w.Attempts == r.Attempt && !w.At.After(r.Sent.Add(storeSlack)) {
			return i
		}
	}
	return -1
}

// claimedBefore tells whether the claim that a request was sent under began before t.
func (s *story) claimedBefore(r *Request, t time.Time) bool {
	i := s.claim(r)
	for _, w := range s.writes[:i+1] {
		if w.Token == s.writes[i].Token {
			return !w.At.After(t.Add(storeSlack))
		}
	}
	return false
}

// done is the first write of a success; -1: there is none.
func (s *story) done() int {
	for i, w := range s.writes {
		if w.State == Done {
			return i
		}
	}
	return -1
}

func (s *story) worked() int {
	n := 0
	for _, r := range s.requests {
		if r.Worked {
			n++
		}
	}
	return n
}

// letter tells whether there is a letter that the test accepts.
func (s *story) letter(accept func(*Letter) bool) bool {
	for _, l := range s.letters {
		if accept(l) {
			return true
		}
	}
	return false
}

func isConflict(l *Letter) bool { return l.Reason == reasonConflict }
func noConflict(l *Letter) bool { return !isConflict(l) }
func isUnknown(l *Letter) bool  { return l.Reason == reasonUnknown }
