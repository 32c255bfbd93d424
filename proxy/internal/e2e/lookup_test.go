package e2e

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// hangOnce is a service that never answers the first POST of a message.
func hangOnce(r testkit.Received) testkit.Action { return testkit.Action{Hang: r.Number == 1} }

// Catches: a POST without a lookup, a lookup before the request deadline, an unclear answer taken for either clear one, the same pause for ever, a
// message that the service does not know flagged as of unknown outcome.
func TestLookupAfterATimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int
		posts   int
	}{
		"done":                   {[]int{202}, 1},
		"not done":               {[]int{404}, 2},
		"unclear, then not done": {[]int{500, 302, 0, 404}, 2},
		"unclear, then done":     {[]int{503, 204}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, hangOnce)
			q := s.asks(inOrder(c.answers...))
			s.start(s.lookingUp())
			s.publish("a")
			s.settled()
			posts := s.posts("a", c.posts)
			asked := s.inquired(q, "a", len(c.answers))
			if last := posts[len(posts)-1]; last.Unknown || last.Attempt != strconv.Itoa(c.posts) {
				t.Errorf("the last POST says attempt %s, unknown %t", last.Attempt, last.Unknown)
			}
			for i, least := range []time.Duration{80, 240, 720} { // the ladder in ms, less a fifth
				if i+1 < len(asked) && asked[i+1].began.Sub(asked[i].ended) < least*time.Millisecond {
					t.Errorf("lookup %d came %v after the one before it", i+2, asked[i+1].began.Sub(asked[i].ended))
				}
			}
			s.noLetters()
		})
	}
}

// Catches: a lookup that cannot be made taken for an answer.
func TestLookupIsRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t, hangOnce)
	q := s.asks(inOrder(200))
	leg, err := testkit.NewFaultProxy(s.service.Addr, testkit.Raw)
	s.must(err)
	t.Cleanup(func() { s.closed(leg.Close()) })
	r := s.start(s.lookingUp(), env{"FORWARD_LOOKUP_URL": "http://" + leg.Addr + "/of/{id}"})
	s.publish("a")
	s.begun("a", 1)
	leg.Refuse()
	said := func() int {
		return len(r.Logs.Find(func(l testkit.LogLine) bool { return l.Message() == unclear }))
	}
	s.eventually("it asked in vain twice", func() (bool, error) { return said() >= 2, nil })
	s.must(leg.Reopen())
	s.settled()
	s.posts("a", 1)
	s.inquired(q, "a", 1)
	s.noLetters()
}

// Catches: pauses that begin anew when a message comes back from a wait queue.
func TestLookupsOverWaitQueues(t *testing.T) {
	t.Parallel()
	s := newStand(t, hangOnce)
	q := s.asks(inOrder(500, 500, 500, 404))
	s.start(s.lookingUp(), env{"RETRY_BACKOFF": "100ms,1s,3s", "RETRY_HOLD": "500ms"})
	s.publish("a")
	s.answered("a")
	s.settled()
	asked := s.inquired(q, "a", 4)
	for i, least := range []time.Duration{80, 800, 2400} { // the ladder in ms, less a fifth
		if pause := asked[i+1].began.Sub(asked[i].ended); pause < least*time.Millisecond {
			t.Errorf("lookup %d came %v after the one before it", i+2, pause)
		}
	}
	s.posts("a", 2)
	s.noLetters()
}

// Catches: a service that never knows asked for ever.
func TestLookupEndsWithAge(t *testing.T) {
	t.Parallel()
	s := newStand(t, hangOnce)
	q := s.asks(inOrder(http.StatusInternalServerError))
	s.start(s.lookingUp(), env{"RETRY_MAX_AGE": "3s"})
	s.publish("a")
	s.letter("a", "unknown-outcome")
	s.settled()
	s.posts("a", 1)
	if n := len(q.of("a")); n < 2 {
		t.Errorf("%d lookups in three seconds", n)
	}
}

// Catches: a message whose sidecar was killed in the POST sent again, by another replica or after a restart, without a lookup after the deadline.
func TestLookupAfterAKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, posts int
		another       bool // another replica is there already
	}{
		"done, another replica": {200, 1, true},
		"not done, a restart":   {404, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, hangOnce)
			q := s.asks(inOrder(c.answer))
			settings := []env{s.lookingUp(), crashEnv()}
			first := s.start(settings...)
			s.publish("a")
			s.begun("a", 1)
			if c.another {
				s.start(settings...).waitConsuming()
				first.kill()
			} else {
				first.kill()
				s.start(settings...)
			}
			s.settled()
			posts := s.posts("a", c.posts)
			s.inquired(q, "a", 1)
			if last := posts[len(posts)-1]; last.Unknown || last.Attempt != strconv.Itoa(c.posts) {
				t.Errorf("the last POST says attempt %s, unknown %t", last.Attempt, last.Unknown)
			}
			s.noLetters()
		})
	}
}

// Catches: a lookup that was cut off taken for one that was answered: whoever takes the message over asks again.
func TestKillDuringTheLookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, posts int }{"done": {200, 1}, "not done": {404, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, hangOnce)
			release := make(chan struct{})
			q := s.asks(func(_ string, n int) int {
				if n == 1 {
					<-release
					return 0
				}
				return c.answer
			})
			first := s.start(s.lookingUp())
			s.publish("a")
			s.asked(q, "a", 1)
			first.kill()
			close(release)
			s.start(s.lookingUp())
			s.settled()
			posts := s.posts("a", c.posts)
			s.inquired(q, "a", 2)
			last := posts[len(posts)-1]
			// Nobody can tell that the killed one had sent nothing: a number is used up.
			if n, err := strconv.Atoi(last.Attempt); err != nil || n < c.posts || n > c.posts+1 || last.Unknown {
				t.Errorf("the last POST says attempt %s, unknown %t", last.Attempt, last.Unknown)
			}
			s.noLetters()
		})
	}
}

// Catches: lookups that are trusted although the service says of an ID that nobody has that its work is done, or cannot say; a status that does not
// tell why the queue waits.
func TestLookupIsNotTrusted(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			q := s.asks(inOrder(404))
			q.meetStrangers(status)
			s.publish("a")
			r := s.start(s.lookingUp())
			r.waitMissing("service of queue " + s.queue + ": FORWARD_LOOKUP_URL")
			r.waitMetric(`rabbitonce_queue_paused{queue="{queue}",why="service"}`, 1)
			if n := s.service.Journal.Count(); n > 0 {
				t.Errorf("%d POSTs", n)
			}
			q.meetStrangers(http.StatusNotFound)
			r.waitConsuming()
			s.settled()
			s.once("a")
			s.inquired(q, "a", 0)
		})
	}
}

// Catches: lookups and POSTs of one message at the same time, by two replicas that each have a copy; a POST that no 404 came before; a lease that is
// not renewed while the service takes its time to look.
func TestLookupsOnTwoReplicas(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch {
		case r.Number > 2:
			return testkit.Action{}
		case r.Key[len(r.Key)-1]%2 == 0:
			return testkit.Action{Status: http.StatusBadGateway}
		}
		return testkit.Action{Close: true}
	})
	// The first two POSTs of each end unknown. The lookups after the first: unclear, slow and not done; after the second: done for every third.
	q := s.asks(func(id string, n int) int {
		number, _ := strconv.Atoi(id[len("m-"):])
		switch {
		case n == 1:
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			return http.StatusServiceUnavailable
		case n == 2 && number%5 == 0:
			time.Sleep(2500 * time.Millisecond) // longer than the lease
		case n == 3 && number%3 == 0:
			return http.StatusOK
		}
		return http.StatusNotFound
	})
	all := ids("m", 12)
	settings := []env{s.lookingUp(), {"PREFETCH": "24", "FORWARD_CONCURRENCY": "6"}}
	for range 2 {
		s.start(settings...).waitConsuming()
	}
	s.publish(slices.Concat(all, all)...)
	s.settled()
	for number, id := range all {
		posts := 3
		if number%3 == 0 {
			posts = 2
		}
		s.posts(id, posts)
		s.inquired(q, id, 3)
	}
	s.noLetters()
}
