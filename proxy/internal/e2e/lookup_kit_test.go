package e2e

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// question is one lookup of a message.
type question struct {
	id           string
	began, ended time.Time // ended is zero while it has no answer
}

// questions are the lookups that a service is asked, and how it answers.
type questions struct {
	answer func(id string, n int) int // the status for the n-th question about an ID, from 1; 0 closes the connection

	mu       sync.Mutex
	stranger int // the status for an ID that no message has, as asked at start
	all      []question
}

// asks makes the stand's service answer lookups.
func (s *stand) asks(answer func(id string, n int) int) *questions {
	q := &questions{answer: answer, stranger: http.StatusNotFound}
	s.service.Other(q.serve)
	return q
}

// inOrder answers the n-th question with the n-th status, and all others with the last.
func inOrder(statuses ...int) func(string, int) int {
	return func(_ string, n int) int { return statuses[min(n, len(statuses))-1] }
}

func (q *questions) serve(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/of/")
	q.mu.Lock()
	if strings.HasPrefix(id, "rabbitonce-") {
		defer q.mu.Unlock()
		w.WriteHeader(q.stranger)
		return
	}
	q.all = append(q.all, question{id: id, began: time.Now()})
	place, n := len(q.all)-1, len(q.ofLocked(id))
	q.mu.Unlock()
	status := q.answer(id, n)
	q.mu.Lock()
	q.all[place].ended = time.Now() // before the answer leaves
	q.mu.Unlock()
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

// meetStrangers changes the answer for an ID that no message has.
func (q *questions) meetStrangers(status int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stranger = status
}

// of returns the questions about an ID.
func (q *questions) of(id string) []question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ofLocked(id)
}

func (q *questions) ofLocked(id string) []question {
	return slices.DeleteFunc(slices.Clone(q.all), func(x question) bool { return x.id != id })
}

// asked waits until the n-th question about an ID has begun.
func (s *stand) asked(q *questions, id string, n int) {
	s.t.Helper()
	s.eventually("the service is asked", func() (bool, error) { return len(q.of(id)) >= n, nil })
}

// inquired wants n questions about an ID: each alone, no other question and no POST at the same time, and after the
// deadline of the POST that it is about.
func (s *stand) inquired(q *questions, id string, n int) []question {
	s.t.Helper()
	asked := q.of(id)
	if len(asked) != n {
		s.t.Errorf("%d lookups of %s, want %d", len(asked), id, n)
	}
	for i, x := range asked {
		if i > 0 && x.began.Before(asked[i-1].ended) {
			s.t.Errorf("lookup %d of %s began before the answer to the one before it", i+1, id)
		}
		var about *testkit.Entry
		for _, e := range s.service.Journal.ByKey(id) {
			if e.Began.Before(x.began) {
				about = &e
			}
			if e.Began.Before(x.ended) && (e.Open() || x.began.Before(e.Ended)) {
				s.t.Errorf("lookup %d of %s at the same time as its POST of attempt %s", i+1, id, e.Attempt)
			}
		}
		if about == nil {
			s.t.Errorf("lookup %d of %s before any POST", i+1, id)
			continue
		}
		deadline, err := time.Parse(time.RFC3339, about.Header.Get("Delivery-Deadline"))
		s.must(err)
		if x.began.Before(deadline) {
			s.t.Errorf("lookup %d of %s came %v before the deadline of its POST", i+1, id, deadline.Sub(x.began))
		}
	}
	return asked
}

// lookingUp are the settings of a replica that looks up.
func (s *stand) lookingUp() env {
	return env{
		"FORWARD_ON_UNKNOWN": "lookup", "FORWARD_LOOKUP_URL": s.service.URL + "/of/{id}",
		"FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "2s", "RETRY_BACKOFF": "100ms,300ms,900ms",
	}
}

// unclear is what the log says of a lookup that was answered neither 2xx nor 404.
const unclear = "the outcome of a request is unknown, and the service does not say what became of it: it is asked again later"
