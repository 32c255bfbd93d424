package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	judge "rabbitonce/proxy/internal/faults/check"
)

// schedule is all that a seed decides about a simulated run.
type schedule struct {
	seed       uint64
	policy     judge.Policy
	quorum     bool
	environ    []string
	timeout    time.Duration // FORWARD_TIMEOUT
	lease      time.Duration // DEDUP_LEASE
	replicas   int
	messages   []simMessage
	faults     []simFault
	slowCommit bool
	braked     bool
}

// simMaxAttempts is RETRY_MAX_ATTEMPTS and FORWARD_UNKNOWN_MAX: more than what a message has to fail and all faults together
// bring about, so that only a message that always fails comes to it.
const simMaxAttempts = 14

// simMessage is one ID: when it is published, each time, and what the service does with it.
type simMessage struct {
	id       string
	at       []time.Duration // the first, and the duplicates
	conflict time.Duration   // when a copy with another body comes; 0: none does
	destiny  judge.Destiny
	answers  []simAnswer // to its requests, in order; the last one repeats
}

// simAnswer is what the service does with one request.
type simAnswer struct {
	kind       answerKind
	work       time.Duration
	status     int
	retryAfter int // seconds
}

type answerKind uint8

const (
	answerStatus  answerKind = iota // no work, unless the status is 2xx
	answerClose                     // work, and the connection ends
	answerBroken                    // work, and half an answer
	answerGateway                   // work, and 502
	answerNothing                   // work, and no answer
	answerHang                      // neither work nor answer
	answerKinds   = iota
)

// draw makes the schedule of a seed.
func draw(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	s := &schedule{seed: seed, quorum: r.IntN(3) > 0, replicas: 1 + r.IntN(3), slowCommit: r.IntN(2) == 0}
	s.policy = pick(r, judge.Retry, judge.Retry, judge.DeadLetter, judge.Lookup)
	s.timeout = pick(r, 1*time.Second, 2*time.Second, 5*time.Second, 10*time.Second)
	s.lease = pick(r, 2*time.Second, 3*time.Second, 6*time.Second)
	s.drawEnviron(r)
	for i := range 4 + r.IntN(9) {
		s.messages = append(s.messages, s.drawMessage(r, i))
	}
	for range r.IntN(6) {
		f := s.drawFault(r)
		if n := len(s.faults); n > 0 && r.IntN(2) == 0 { // into the one before
			f.at = s.faults[n-1].at + between(r, 0, s.faults[n-1].span)
		}
		s.faults = append(s.faults, f)
	}
	return s
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// between is a time with nanoseconds, so that two events hardly ever come at once.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

func (s *schedule) drawEnviron(r *rand.Rand) {
	concurrency := 1 + r.IntN(6)
	set := func(name string, value any) { s.environ = append(s.environ, fmt.Sprintf("%s=%v", name, value)) }
	set("RABBITMQ_URL", "amqp://guest:guest@"+simBrokerAddress+"/")
	set("QUEUES", simQueue)
	set("DEDUP_STORE", "memory")
	set("DEDUP_LEASE", s.lease)
	set("FORWARD_URL", "http://"+simServiceAddress+"/messages")
	set("FORWARD_TIMEOUT", s.timeout)
	set("FORWARD_CONCURRENCY", concurrency)
	set("PREFETCH", concurrency*(1+r.IntN(5)))
	set("FORWARD_ON_UNKNOWN", s.policy)
	set("FORWARD_UNKNOWN_MAX", simMaxAttempts)
	set("FORWARD_LOOKUP_URL", "http://"+simServiceAddress+"/lookup/{id}")
	s.braked = r.IntN(4) == 0
	set("FORWARD_BRAKE_AFTER", map[bool]int{true: 20, false: 0}[s.braked])
	set("RETRY_MAX_ATTEMPTS", simMaxAttempts)
	set("RETRY_BACKOFF", pick(r, "100ms", "200ms,1s", "100ms,500ms,3s", "1s,4s"))
	set("RETRY_HOLD", pick(r, "300ms", "1s", "5s"))
	set("SHUTDOWN_GRACE", pick(r, "1s", "3s", "25s"))
}

func (s *schedule) drawMessage(r *rand.Rand, i int) simMessage {
	m := simMessage{id: fmt.Sprintf("m%d", i), at: []time.Duration{between(r, 0, 4*time.Second)}}
	for r.IntN(4) == 0 {
		m.at = append(m.at, m.at[0]+between(r, 0, pick(r, time.Millisecond, time.Second, 10*time.Second)))
	}
	slices.Sort(m.at)
	work := func() time.Duration {
		return between(r, 0, pick(r, time.Millisecond, 30*time.Millisecond, s.timeout/2))
	}
	switch kind := r.IntN(16); {
	case kind == 0:
		m.destiny = judge.ToBeRejected
		m.answers = []simAnswer{{work: work(), status: 400}}
		return m
	case kind == 1 && !s.braked: // that would take hours
		m.destiny = judge.ToExhaust
		m.answers = []simAnswer{{work: between(r, 0, 5*time.Millisecond), status: 500}}
		return m
	}
	if r.IntN(25) == 0 {
		m.conflict = m.at[0] + between(r, 0, 3*time.Second)
	}
	for n := 0; n < 3 && r.IntN(4) == 0; n++ {
		m.answers = append(m.answers, s.drawTrouble(r, work()))
	}
	m.answers = append(m.answers, simAnswer{work: work(), status: 200})
	return m
}

// drawTrouble is an answer that does not end it.
func (s *schedule) drawTrouble(r *rand.Rand, work time.Duration) simAnswer {
	a := simAnswer{kind: answerKind(r.IntN(answerKinds)), work: work}
	switch a.kind {
	case answerStatus:
		a.status = pick(r, 500, 500, 503, 200)
		switch a.status {
		case 503:
			a.retryAfter = 1 + r.IntN(4)
		case 200: // too late
			a.work = between(r, s.timeout, 2*s.timeout)
		}
	case answerHang:
		a.work = between(r, s.timeout, 3*s.timeout)
	}
	return a
}
