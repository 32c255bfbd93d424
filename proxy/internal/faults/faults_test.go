package faults

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

// roundLength bounds a round, after which everything has to settle.
const roundLength = 3 * time.Minute

// TestFaults runs for FAULTS_SECONDS (60) with FAULTS_REPLICAS (3), in rounds whose seeds count up from FAULTS_SEED (the
// time).
func TestFaults(t *testing.T) {
	left := time.Duration(setting(t, "FAULTS_SECONDS", 60)) * time.Second
	seed := uint64(setting(t, "FAULTS_SEED", int(time.Now().Unix())))
	jumping, err := buildJumping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = jumping.Remove() }()
	s := newTestStage(t, programs{binary: shared.Binary.Path, jumping: jumping.Path}, setting(t, "FAULTS_REPLICAS", 3))
	t.Logf("FAULTS_SEED=%d", seed)
	var sum summary
	for ; left > 0; left -= roundLength {
		d := min(left, roundLength)
		h, err := s.round(seed, d, lanes())
		if err != nil {
			t.Fatalf("round with FAULTS_SEED=%d: %v", seed, err)
		}
		report := check.Check(h)
		sum.add(h, report, d, s.parked)
		t.Logf("seed %d: %s", seed, roundLine(h, report))
		if len(report.Violations) > 0 {
			t.Errorf("round with FAULTS_SEED=%d broke promises:\n%s", seed, explain(h, report))
		}
		seed++
	}
	fmt.Print(sum.text())
	if err := sum.conclusive(); err != nil {
		t.Error(err)
	}
}

func newTestStage(t *testing.T, run programs, replicas int) *stage {
	t.Helper()
	s, err := newStage(&shared, run, replicas, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// setting reads a whole number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q: it must be a whole number", name, text)
	}
	return n
}
