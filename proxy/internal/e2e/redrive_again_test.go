package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: an acknowledgement before the confirm (a kill would lose the letter), and a copy in both queues that is executed twice.
func TestRedriveKilled(t *testing.T) {
	t.Parallel()
	for _, point := range []struct {
		name    string
		barrier func(*stand, legs) *testkit.Barrier
		copies  int // put back in the end
	}{
		{"before the publish", func(s *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicPublish(s.queue))
		}, 1},
		{"before the confirm", func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToClient, testkit.BasicAck())
		}, 2},
		{"before the ack", func(_ *stand, l legs) *testkit.Barrier {
			return l.amqp.Barrier(testkit.ToServer, testkit.BasicAck())
		}, 2},
	} {
		for _, unknown := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unknown %t", point.name, unknown), func(t *testing.T) {
				t.Parallel()
				var healthy atomic.Bool
				s := newStand(t, func(testkit.Received) testkit.Action {
					return testkit.Action{Close: unknown && !healthy.Load(), Status: map[bool]int{false: 400, true: 200}[healthy.Load()]}
				})
				settings := env{"FORWARD_ON_UNKNOWN": "deadletter", "FORWARD_TIMEOUT": "1s", "DEDUP_LEASE": "1s"}
				first := s.start(settings)
				s.publish("a")
				first.waitMetric(`rabbitonce_deliveries_total{outcome="dead_letter",queue="{queue}"}`, 1)
				s.emptied() // its record is settled too
				first.term()
				healthy.Store(true)
				l := s.newLegs()
				barrier := point.barrier(s, l)
				killed := s.startRedrive(l.env)
				killed.killAt(barrier)
				s.eventually("the letter is back", func() (bool, error) {
					ready, _, err := s.client.Depth(s.dead)
					return ready == 1, err
				})
				s.putBack(1)
				if ready, _, err := s.client.Depth(s.queue); err != nil || ready != point.copies {
					t.Errorf("%d copies put back (%v), want %d", ready, err, point.copies)
				}
				s.start(settings)
				s.answered("a")
				s.settled()
				second := s.posts("a", 2)[1]
				if second.Attempt != "1" || second.Unknown != unknown || second.Status != 200 {
					t.Errorf("the second POST: attempt %s, unknown %t, answered %d", second.Attempt, second.Unknown, second.Status)
				}
				s.noLetters()
			})
		}
	}
}

// Catches: a redrive that goes round with what dies again.
func TestRedriveWhileSomeDieAgain(t *testing.T) {
	t.Parallel()
	bad := func(id string) bool { n, _ := strconv.Atoi(strings.TrimPrefix(id, "a-")); return n%4 == 0 }
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if bad(r.Key) {
			return testkit.Action{Status: http.StatusBadRequest}
		}
		return testkit.Action{}
	})
	s.start()
	all := ids("a", 200)
	s.publishLetters(all...)
	got := s.putBack(200, "--rate", "0")
	if got.LookedAt != 200 {
		t.Errorf("looked at %d letters", got.LookedAt)
	}
	var good, again []string
	for _, id := range all {
		if bad(id) {
			again = append(again, id)
		} else {
			good = append(good, id)
		}
	}
	s.answered(good...)
	letters := s.letters(len(again))
	s.settled()
	slices.Sort(again)
	if diff := cmp.Diff(again, sortedIDs(letters)); diff != "" {
		t.Errorf("died again (-want +got):\n%s", diff)
	}
	for _, id := range all {
		s.posts(id, 1)
	}
}

// Catches: a rate that is not kept to, a letter that is lost or doubled, an order that changes.
func TestRedriveOfManyWithARate(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 5000)
	s.publishLetters(all...)
	began := time.Now()
	got := s.redrive("--rate", "500", "--limit", "1000")
	if took := time.Since(began); took < 1998*time.Millisecond {
		t.Errorf("1000 letters at 500 a second took %v", took)
	}
	if !strings.Contains(got.notes, " put back, ") {
		t.Error("no progress was shown")
	}
	s.contains(s.queue, all[:1000]...)
	s.putBack(4000, "--rate", "0")
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if diff := cmp.Diff(slices.Sorted(slices.Values(all[1000:])), sortedIDs(messages)); diff != "" {
		t.Errorf("put back without a rate (-want +got):\n%s", diff)
	}
	s.noLetters()
}

// Catches: two redrives that put a letter back twice, or wait for each other.
func TestTwoRedrivesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 400)
	s.publishLetters(all...)
	s.must(s.client.PublishTo(s.ctx, s.dead, deadLetter("another", "x", nil)))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { s.redrive("--rate", "0") })
	}
	both.Wait()
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	slices.Sort(all)
	if diff := cmp.Diff(all, sortedIDs(messages)); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	s.lettersAre("x")
}
