package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

// TestFailOver: a store that fails over forgets what its replica had not received yet. That costs repeats, which are counted, and
// no message. With DEDUP_WAIT_REPLICAS no success is forgotten.
func TestFailOver(t *testing.T) {
	for _, waits := range []int{0, 1} {
		t.Run(fmt.Sprintf("DEDUP_WAIT_REPLICAS=%d", waits), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			p, err := newPair(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.close(); err != nil {
					t.Error(err)
				}
			}()
			servers := shared
			servers.Redis = p.master
			s, err := newStage(&servers, programs{binary: shared.Binary.Path, settings: map[string]string{"DEDUP_WAIT_REPLICAS": fmt.Sprint(waits)}}, 3, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}()
			s.log = newStoreLog(p.replica)
			h, err := s.round(uint64(setting(t, "FAULTS_SEED", int(time.Now().Unix()))), 20*time.Second, p.lanes())
			if err != nil {
				t.Fatal(err)
			}
			broken := map[check.Rule]int{}
			report := check.Check(h)
			for _, v := range report.Violations {
				broken[v.Rule]++
			}
			t.Logf("%s; %v", roundLine(h, report), broken)
			judgeFailOver(t, waits, broken, explain(h, report))
		})
	}
}

// judgeFailOver: what a forgotten record costs is allowed. Whatever has its ID is a new message then, also what would have been
// a conflict.
func judgeFailOver(t *testing.T, waits int, broken map[check.Rule]int, story string) {
	t.Helper()
	for _, rule := range []check.Rule{check.Lost, check.LeftBehind, check.NeverPublished, check.AfterDone, check.LetterChanged} {
		if broken[rule] > 0 {
			t.Errorf("%s: %d times\n%s", rule, broken[rule], story)
		}
	}
	switch lost := broken[check.Unrecorded]; {
	case waits > 0 && lost > 0:
		t.Errorf("%d successes were forgotten\n%s", lost, story)
	case waits == 0 && lost == 0:
		t.Error("inconclusive: without waiting, no success was forgotten")
	}
}
