package faults

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// manner is how the service treats an ID. It does not look at keys: work that is asked for twice is done twice.
type manner uint8

const (
	prompt      manner = iota
	slow               // up to three quarters of the caller's patience
	failsFirst         // 500 up to three times
	busyFirst          // 503 with Retry-After
	rejects            // 400
	closesFirst        // the work is done, and the connection closed
	resetsFirst        // the work is done, and the connection reset
	silentFirst        // the work is done, and there is no answer
	hangsFirst         // neither work nor answer
	lateFirst          // the work is done, and answered, when the caller is gone
	alwaysFails        // 500
	numberOfManners
)

// shares are in per cent.
var shares = [numberOfManners]int{
	prompt: 36, slow: 18, failsFirst: 10, busyFirst: 7, rejects: 6, closesFirst: 8, resetsFirst: 3, silentFirst: 4, hangsFirst: 4, lateFirst: 4,
}

// chance is a source of numbers that depend on the words alone.
func chance(words ...string) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// mannerOf draws the manner of an ID.
func mannerOf(id check.ID) manner {
	if id.Queue == exhaustQueue {
		return alwaysFails
	}
	n := chance(id.Value, "manner").IntN(100)
	for m, share := range shares {
		if n -= share; n < 0 {
			return manner(m)
		}
	}
	return prompt
}

func (m manner) destiny() check.Destiny {
	switch m {
	case rejects:
		return check.ToBeRejected
	case alwaysFails:
		return check.ToExhaust
	default:
		return check.ToBeDone
	}
}

// action is what the service does with the POST of an ID that is its number-th.
func (m manner) action(id check.ID, number int) testkit.Action {
	draw := chance(id.Value, "times")
	quick := time.Duration(draw.IntN(60)) * time.Millisecond
	done := testkit.Action{Delay: quick, Works: true}
	first := number == 1
	switch {
	case m == slow:
		done.Delay = time.Duration(100+draw.IntN(1400)) * time.Millisecond
	case m == failsFirst && number <= 1+draw.IntN(3), m == alwaysFails:
		return testkit.Action{Delay: quick, Status: http.StatusInternalServerError}
	case m == busyFirst && first:
		return testkit.Action{Delay: quick, Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}
	case m == rejects:
		return testkit.Action{Delay: quick, Status: http.StatusBadRequest}
	case m == closesFirst && first:
		done.Close = true
	case m == resetsFirst && first:
		done.Reset = true
	case m == silentFirst && first:
		done.Hang = true
	case m == hangsFirst && first:
		return testkit.Action{Hang: true}
	case m == lateFirst && first:
		done.Delay = timeout + 500*time.Millisecond
	}
	return done
}

// service is the one that all processes call.
type service struct {
	*testkit.Service

	mu   sync.Mutex
	hung chan struct{} // closed when the service works again; nil: it works
	more time.Duration // every request takes that much longer
}

func startService() (*service, error) {
	s := &service{}
	var err error
	s.Service, err = testkit.StartService(s.behave)
	if err == nil {
		s.Other(s.lookup)
	}
	return s, err
}

func (s *service) behave(r testkit.Received) testkit.Action {
	id := check.ID{Queue: r.Queue, Value: r.Key}
	action := mannerOf(id).action(id, r.Number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung != nil {
		action.Wait = s.hung
	}
	action.Delay += s.more
	return action
}

// lookup tells what became of an ID: 200 when its work is done, 404 when it was not begun or has come to nothing, else 409.
func (s *service) lookup(w http.ResponseWriter, r *http.Request) {
	key, asked := strings.CutPrefix(r.URL.Path, "/done/")
	if !asked {
		return
	}
	status := http.StatusNotFound
	for _, e := range s.Journal.ByKey(key) {
		if !e.Worked.IsZero() {
			status = http.StatusOK
			break
		}
		if e.Open() {
			status = http.StatusConflict
		}
	}
	w.WriteHeader(status)
}

// hang has every request of the next time wait, until the time is over.
func (s *service) hang(d time.Duration) {
	hung := make(chan struct{})
	s.set(hung, 0)
	time.Sleep(d)
	s.set(nil, 0)
	close(hung)
}

func (s *service) slow(by, d time.Duration) {
	s.set(nil, by)
	time.Sleep(d)
	s.set(nil, 0)
}

func (s *service) set(hung chan struct{}, more time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung, s.more = hung, more
}

// working returns how many requests of a process are being worked on, or of all when it has no name.
func (s *service) working(process string) int {
	n := 0
	for _, e := range s.Journal.Entries() {
		if e.Open() && (process == "" || e.Header.Get(processHeader) == process) {
			n++
		}
	}
	return n
}
