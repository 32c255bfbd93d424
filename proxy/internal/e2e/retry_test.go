package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: a retry not recorded or not counted, its attempt number wrong, the message acked or dead-lettered at the first failure.
func TestFailsTwiceThenSucceeds(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number <= 2 {
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	s.start(env{"RETRY_BACKOFF": "100ms"})
	s.publish("a")
	s.answered("a")
	s.publish("a")
	s.settled()
	for i, e := range s.posts("a", 3) {
		if e.Attempt != strconv.Itoa(i+1) || e.Unknown {
			t.Errorf("POST %d says attempt %s, unknown %t", i+1, e.Attempt, e.Unknown)
		}
	}
	s.noLetters()
}

// Catches: attempts counted in the process: a restart would start them anew.
func TestAttemptsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Status: http.StatusInternalServerError} })
	settings := env{"RETRY_BACKOFF": "2s", "RETRY_MAX_ATTEMPTS": "2"}
	first := s.start(settings)
	s.publish("a")
	s.answeredBy("a", 1)
	first.waitMetric(`rabbitonce_waiting{queue="{queue}"}`, 1) // its wait is recorded
	first.term()
	s.start(settings)
	letter := s.letter("a", "attempts-exhausted")
	if letter.Headers["x-rabbitonce-attempts"] != int64(2) || letter.Headers["x-rabbitonce-status"] != int64(500) {
		t.Errorf("headers of the letter: %v", letter.Headers)
	}
	s.settled()
	s.posts("a", 2)
}

// Catches: deferrals counted as failures, Retry-After ignored or shortened.
func TestDeferredIsNotCounted(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number <= 2 {
			return testkit.Action{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}
		}
		return testkit.Action{}
	})
	s.start(env{"RETRY_BACKOFF": "100ms", "RETRY_MAX_ATTEMPTS": "1"})
	s.publish("a")
	s.answered("a")
	s.settled()
	posts := s.posts("a", 3)
	for i, later := range posts[1:] {
		if pause := later.Began.Sub(posts[i].Ended); pause < time.Second {
			t.Errorf("POST %d came %v after a 503 that asked for 1s", i+2, pause)
		}
	}
	s.noLetters()
}

// Catches: no end to the attempts, or one attempt more or less.
func TestAttemptsExhausted(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action {
		return testkit.Action{Status: http.StatusInternalServerError, Body: []byte("out of order")}
	})
	s.start(env{"RETRY_BACKOFF": "50ms", "RETRY_MAX_ATTEMPTS": "3"})
	s.publish("a")
	letter := s.letter("a", "attempts-exhausted")
	if letter.Headers["x-rabbitonce-response"] != "out of order" {
		t.Errorf("headers of the letter: %v", letter.Headers)
	}
	s.settled()
	s.posts("a", 3)
}

// Catches: a copy that is POSTed while its message waits for the next attempt.
func TestCopyDoesNotJumpTheLadder(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if r.Number == 1 {
			return testkit.Action{Status: http.StatusInternalServerError}
		}
		return testkit.Action{}
	})
	settings := env{"RETRY_BACKOFF": "5s", "PREFETCH": "4", "FORWARD_CONCURRENCY": "1"} // half of four may rest here
	replicas := []*replica{s.start(settings), s.start(settings)}
	for _, r := range replicas {
		r.waitConsuming()
	}
	s.publish("a")
	s.answeredBy("a", 1)
	s.publish("a", "a") // the broker gives one to each
	for _, r := range replicas {
		r.waitCopies(1)
	}
	s.answered("a")
	s.settled()
	posts := s.posts("a", 2)
	if pause := posts[1].Began.Sub(posts[0].Ended); pause < 4*time.Second { // 5s less a fifth
		t.Errorf("the second attempt came after %v", pause)
	}
}

// Catches: a timeout taken for done or for failed, the repeat sent before the deadline, FORWARD_UNKNOWN_MAX ignored.
func TestTimeoutIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(testkit.Received) testkit.Action { return testkit.Action{Hang: true} })
	s.start(env{"FORWARD_TIMEOUT": "1s", "FORWARD_UNKNOWN_MAX": "1", "RETRY_BACKOFF": "50ms"})
	s.publish("a")
	s.letter("a", "unknown-outcome")
	s.settled()
	posts := s.posts("a", 2)
	s.repeated(posts[0], posts[1])
}

// Catches: a connection that breaks after the request was sent taken for unreachable (the POST repeated unflagged), or replayed by the
// HTTP client (POSTed twice in one attempt).
func TestConnectionClosedInThePOST(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		return testkit.Action{Close: r.Number == 2 && r.Key != "warm", Reset: r.Number == 1 && r.Key != "warm"}
	})
	s.start(env{"FORWARD_TIMEOUT": "2s", "FORWARD_CONCURRENCY": "1", "RETRY_BACKOFF": "50ms"})
	s.publish("warm", "a") // the second goes over a connection that was used before
	s.answered("a")
	s.settled()
	posts := s.posts("a", 3)
	s.repeated(posts[0], posts[1])
	s.flagged(posts[2], 3)
	s.noLetters()
}
