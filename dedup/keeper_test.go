package dedup

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meddler is a backend that a test can make fail, and that counts renewals.
type meddler struct {
	*memory

	mu       sync.Mutex
	fail     error
	hang     time.Duration // how long a renewal takes to be answered
	renewals int
	groups   int // that held a renewal
}

func (m *meddler) run(ctx context.Context, group []*call) {
	m.mu.Lock()
	fail, hang := m.fail, m.hang
	renewals := 0
	for _, c := range group {
		if c.op.word == wordRenew {
			renewals++
		}
	}
	m.renewals += renewals
	m.groups += min(renewals, 1)
	m.mu.Unlock()
	if renewals > 0 {
		time.Sleep(hang)
	}
	if fail == nil {
		m.memory.run(ctx, group)
		return
	}
	for _, c := range group {
		c.err = fail
	}
}

func (m *meddler) set(fail error, hang time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.hang = fail, hang
}

func (m *meddler) counts() (renewals, groups int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.renewals, m.groups
}

// keeping runs a test in a bubble with a running store on fake time.
func keeping(t *testing.T, test func(t *testing.T, s *Store, m *meddler)) {
	synctest.Test(t, func(t *testing.T) {
		m := &meddler{memory: newMemory()}
		s := newStore(m, nil)
		run(t, s)
		test(t, s, m)
	})
}

func hold(t *testing.T, s *Store, key string) *Lease {
	t.Helper()
	c, err := s.Claim(t.Context(), ClaimRequest{Key: key, Token: NewToken(), Lease: lease, Retention: keep})
	if err != nil || c.Verdict != Claimed {
		t.Fatalf("claim: %v, %v", c.Verdict, err)
	}
	return c.Lease
}

func lost(l *Lease) bool {
	synctest.Wait()
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

func TestALeaseIsRenewedUntilItIsDropped(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		time.Sleep(10 * lease)
		if lost(l) || l.Left() < lease/2 {
			t.Fatalf("lost %v, left %v", lost(l), l.Left())
		}
		if renewals, _ := m.counts(); renewals < 30 || renewals > 45 {
			t.Errorf("%d renewals in ten leases, want three or four a lease", renewals)
		}
		l.Drop()
		l.Drop()
		before, _ := m.counts()
		time.Sleep(lease + time.Second)
		if after, _ := m.counts(); after != before || lost(l) {
			t.Errorf("after Drop: %d renewals, lost %v", after-before, lost(l))
		}
		hold(t, s, "key") // a takeover
	})
}

func TestARenewalOvertakenByTheSuccessIsNoLoss(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		m.set(nil, time.Second) // renewals take effect a second later
		time.Sleep(lease/3 + time.Millisecond)
		if renewals, _ := m.counts(); renewals != 1 {
			t.Fatalf("%d renewals in flight", renewals)
		}
		if err := s.Succeed(t.Context(), "key", 200, payload, keep); err != nil {
			t.Fatal(err)
		}
		l.Drop()
		time.Sleep(2 * time.Second)
		if lost(l) {
			t.Error("a dropped lease was lost")
		}
	})
}

func TestLeasesAreRenewedInGroups(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		for i := range 50 {
			hold(t, s, string(rune('a'+i)))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * lease)
		renewals, groups := m.counts()
		if renewals < 50*15 || groups > renewals/5 {
			t.Errorf("%d renewals in %d groups", renewals, groups)
		}
	})
}

func TestSettlingEndsALease(t *testing.T) {
	for name, settle := range map[string]func(*Store, *Lease) (Settlement, error){
		"wait": func(s *Store, l *Lease) (Settlement, error) {
			return s.Wait(context.Background(), l, 0, WaitFailed)
		},
		"bury": func(s *Store, l *Lease) (Settlement, error) {
			return s.Bury(context.Background(), l, ReasonRejected, NewDeadID(), false)
		},
		"release": func(s *Store, l *Lease) (Settlement, error) { return s.Release(context.Background(), l) },
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(t *testing.T, s *Store, m *meddler) {
				l := hold(t, s, "key")
				down := errors.New("down")
				m.set(down, 0)
				if _, err := settle(s, l); !errors.Is(err, down) {
					t.Fatalf("settle: %v", err)
				}
				m.set(nil, 0)
				time.Sleep(lease / 2) // between two renewals
				before, _ := m.counts()
				if before == 0 || lost(l) {
					t.Fatalf("an error ended the lease: %d renewals, lost %v", before, lost(l))
				}
				if got, err := settle(s, l); err != nil || got != Applied {
					t.Fatalf("settle: %v, %v", got, err)
				}
				time.Sleep(2 * lease)
				if after, _ := m.counts(); after != before || lost(l) {
					t.Errorf("after settling: %d renewals, lost %v", after-before, lost(l))
				}
			})
		})
	}
}

func TestALeaseThatCannotBeRenewedIsLostInTime(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		m.set(errors.New("down"), 0)
		start := time.Now()
		<-l.Lost()
		if left, want := l.Left(), lostMargin(lease); left != want {
			t.Errorf("lost with %v left, want %v", left, want)
		}
		if took := time.Since(start); took != lease-lostMargin(lease) {
			t.Errorf("lost after %v", took)
		}
		// Tried again and again, but not without a pause.
		if renewals, _ := m.counts(); renewals < 5 || renewals > 40 {
			t.Errorf("%d renewals were tried", renewals)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(s.metrics.leaseLost)
		if got := gather(t, registry)["rabbitonce_lease_lost_total"]; got != 1 {
			t.Errorf("lease_lost_total %v", got)
		}
		// Once lost it stays lost, whatever becomes of the store.
		m.set(nil, 0)
		before, _ := m.counts()
		time.Sleep(lease)
		if after, _ := m.counts(); after != before {
			t.Errorf("a lost lease was renewed %d times", after-before)
		}
	})
}

func TestALeaseSurvivesAShortOutage(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		m.set(errors.New("down"), 0)
		time.Sleep(lease / 2)
		m.set(nil, 0)
		time.Sleep(5 * lease)
		if lost(l) || l.Left() < lease/2 {
			t.Errorf("lost %v, left %v", lost(l), l.Left())
		}
	})
}

func TestALeaseThatIsAnothersIsLostAtTheNextRenewal(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		m.mu.Lock()
		delete(m.entries, "key")
		m.mu.Unlock()
		start := time.Now()
		<-l.Lost()
		if took := time.Since(start); took > lease/3 {
			t.Errorf("noticed after %v", took)
		}
	})
}

func TestARenewalCountsFromItsSending(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		l := hold(t, s, "key")
		m.set(nil, 12*time.Second) // slow, but answered before the lease ends
		time.Sleep(lease - 5*time.Second)
		if left := l.Left(); lost(l) || left > lease-12*time.Second {
			t.Errorf("lost %v, left %v: the answer's way was not counted", lost(l), left)
		}
		// An answer that comes after the end is worth nothing.
		m.set(nil, 2*lease)
		<-l.Lost()
		if left := l.Left(); left > lostMargin(lease) {
			t.Errorf("lost with %v left", left)
		}
		time.Sleep(3 * lease)
		if left := l.Left(); left > 0 {
			t.Errorf("a late answer brought the lease back: %v left", left)
		}
	})
}

func TestAClaimCountsFromItsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		s := openGated(t, g)
		granted := make(chan Claim)
		go func() {
			c, err := s.Claim(t.Context(), ClaimRequest{Key: "key", Token: NewToken(), Lease: lease, Deadline: deadline, Retention: keep})
			if err != nil {
				t.Error(err)
			}
			granted <- c
		}()
		time.Sleep(10 * time.Second) // on its way
		g.gate <- nil
		l := (<-granted).Lease
		if l.Left() != lease-10*time.Second || l.DeadlineLeft() != deadline-10*time.Second {
			t.Errorf("left %v, deadline %v: the answer's way was not counted", l.Left(), l.DeadlineLeft())
		}
	})
}

func TestClaimingAgainRefreshesTheLease(t *testing.T) {
	keeping(t, func(t *testing.T, s *Store, m *meddler) {
		r := ClaimRequest{Key: "key", Token: NewToken(), Lease: lease, Deadline: deadline, Retention: keep}
		first, err := s.Claim(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if left := first.Lease.DeadlineLeft(); left != deadline-5*time.Second {
			t.Errorf("deadline left: %v", left)
		}
		again, err := s.Claim(t.Context(), r)
		if err != nil || again.Lease != first.Lease {
			t.Fatalf("another lease, %v", err)
		}
		if first.Lease.Left() != lease || first.Lease.DeadlineLeft() != deadline {
			t.Errorf("left %v, deadline %v", first.Lease.Left(), first.Lease.DeadlineLeft())
		}
		// A lost lease does not come back; the claim gives a new one.
		m.set(errors.New("down"), 0)
		<-first.Lease.Lost()
		m.set(nil, 0)
		again, err = s.Claim(t.Context(), r)
		if err != nil || again.Verdict != Claimed || again.Lease == first.Lease || lost(again.Lease) {
			t.Fatalf("claim after the loss: %v, %v", again.Verdict, err)
		}
		// The old one, dropped late, does not take the new one along.
		first.Lease.Drop()
		time.Sleep(2 * lease)
		if lost(again.Lease) || again.Lease.Left() <= 0 {
			t.Errorf("lost %v, left %v", lost(again.Lease), again.Lease.Left())
		}
	})
}

// TestAStoppedKeeperGivesUpBeforeItRenews is what the keeper finds when the
// process was stopped for longer than the lease.
func TestAStoppedKeeperGivesUpBeforeItRenews(t *testing.T) {
	m := &meddler{memory: newMemory()}
	s := newStore(m, nil)
	op := operation{key: "key", token: NewToken()}
	l := s.keeper.claimed(&op, time.Now().Add(-lease), lease, deadline)
	s.keeper.look()
	select {
	case <-l.Lost():
	default:
		t.Error("not lost")
	}
	if renewals, _ := m.counts(); renewals != 0 || l.Left() > 0 {
		t.Errorf("%d renewals, left %v", renewals, l.Left())
	}
}
