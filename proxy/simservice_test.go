package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	judge "rabbitonce/proxy/internal/faults/check"
)

// simService is the HTTP service: it does with each request what the schedule says, and writes down what came of it.
type simService struct {
	world *world
	plans map[string]*simMessage

	mu       sync.Mutex
	seen     map[string]int // requests that came, by ID
	done     map[string]bool
	working  map[string]int
	requests []*judge.Request // all that were sent, in order
	crashed  chan struct{}    // closed when what runs now dies
}

func newSimService(w *world) *simService {
	s := &simService{
		world: w, plans: map[string]*simMessage{}, seen: map[string]int{}, done: map[string]bool{}, working: map[string]int{},
		crashed: make(chan struct{}),
	}
	for i := range w.schedule.messages {
		s.plans[w.schedule.messages[i].id] = &w.schedule.messages[i]
	}
	return s
}

// crash ends all that is under way, without its work.
func (s *simService) crash() {
	s.mu.Lock()
	close(s.crashed)
	s.crashed = make(chan struct{})
	s.mu.Unlock()
	for _, leg := range s.world.net.Legs("", simServiceAddress) {
		leg.Cut()
	}
}

// sent notes a request that leaves a replica.
func (s *simService) sent(process string, data []byte) {
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil || request.Method != http.MethodPost {
		return
	}
	attempt, _ := strconv.Atoi(request.Header.Get("Delivery-Attempt"))
	r := &judge.Request{
		ID: judge.ID{Queue: simQueue, Value: request.Header.Get("Idempotency-Key")}, Process: process, Attempt: attempt,
		Unknown: request.Header.Get("Delivery-Outcome-Unknown") == "true", Sent: time.Now(),
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	s.world.logf("%s sends %s, attempt %d, flagged %t", process, r.ID.Value, attempt, r.Unknown)
	s.world.happened(instantSent)
}

// arrived finds what was sent: the latest, since what did not arrive at once was lost.
func (s *simService) arrived(process, id string, attempt int) *judge.Request {
	for _, r := range slices.Backward(s.requests) {
		if r.Process == process && r.ID.Value == id && r.Attempt == attempt && r.Began.IsZero() {
			r.Began = time.Now()
			return r
		}
	}
	return nil
}

// serve answers the requests of one connection.
func (s *simService) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		if id, ok := strings.CutPrefix(request.URL.Path, "/lookup/"); ok {
			s.answerLookup(conn, id)
			continue
		}
		attempt, _ := strconv.Atoi(request.Header.Get("Delivery-Attempt"))
		if !s.handle(conn, request.Header.Get("Idempotency-Key"), attempt) {
			return
		}
	}
}

func (s *simService) answerLookup(conn net.Conn, id string) {
	s.mu.Lock()
	status := http.StatusNotFound
	switch {
	case s.done[id]:
		status = http.StatusOK
	case s.working[id] > 0:
		status = http.StatusConflict
	}
	s.mu.Unlock()
	s.world.logf("service answers a lookup of %s with %d", id, status)
	respond(conn, status, 0)
}

// handle works on one request. False: the connection ends.
func (s *simService) handle(conn net.Conn, id string, attempt int) bool {
	s.mu.Lock()
	r := s.arrived(conn.RemoteAddr().String(), id, attempt)
	plan := s.plans[id]
	if r == nil || plan == nil {
		s.mu.Unlock()
		s.world.failf("the service got a request that nobody sent: %s, attempt %d", id, attempt)
		return false
	}
	answer := plan.answers[min(s.seen[id], len(plan.answers)-1)]
	s.seen[id]++
	s.working[id]++
	crashed := s.crashed
	s.mu.Unlock()

	lives := true
	select {
	case <-time.After(answer.work):
	case <-crashed:
		lives = false
	}
	s.mu.Lock()
	s.working[id]--
	r.Ended = time.Now()
	if lives {
		r.Worked = answer.works()
		s.done[id] = s.done[id] || r.Worked
		r.Status = answer.said()
	}
	s.mu.Unlock()
	s.world.logf("service ends %s, attempt %d: worked %t, status %d", id, attempt, r.Worked, r.Status)
	s.world.happened(instantWorked)
	if !lives {
		return false
	}
	switch answer.kind {
	case answerStatus:
		respond(conn, answer.status, answer.retryAfter)
		return true
	case answerGateway:
		respond(conn, http.StatusBadGateway, 0)
		return true
	case answerBroken:
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
	case answerNothing:
		select {
		case <-time.After(2 * s.world.schedule.timeout):
		case <-crashed:
		}
	}
	return false
}

func (a *simAnswer) works() bool {
	return a.kind != answerHang && (a.kind != answerStatus || a.status == http.StatusOK)
}

// said is the status of a whole answer; 0: there is none.
func (a *simAnswer) said() int {
	switch a.kind {
	case answerStatus:
		return a.status
	case answerGateway:
		return http.StatusBadGateway
	}
	return 0
}

func respond(conn net.Conn, status, retryAfter int) {
	extra := ""
	if retryAfter > 0 {
		extra = fmt.Sprintf("Retry-After: %d\r\n", retryAfter)
	}
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n%sContent-Length: 0\r\n\r\n", status, http.StatusText(status), extra)
}

// sendingConn notes the requests that a replica sends.
type sendingConn struct {
	net.Conn
	sent func(data []byte)
}

// Write passes on what is written; headers and a small body come in one write.
func (c *sendingConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil {
		c.sent(data)
	}
	return n, err
}
