package faults

import (
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

const (
	mutationRound  = 12 * time.Second
	mutationRounds = 8
)

// TestMutationsAreCaught takes the rules out of the program that it must not be without. Each has to be noticed in a few short
// rounds.
func TestMutationsAreCaught(t *testing.T) {
	for _, m := range mutations() {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			binary, err := buildWith(t.Context(), m.edits)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = binary.Remove() }()
			s := newTestStage(t, programs{binary: binary.Path}, 3)
			seed := uint64(setting(t, "FAULTS_SEED", int(time.Now().Unix())))
			for n := range mutationRounds {
				h, err := s.round(seed+uint64(n), mutationRound, m.lanes())
				if err != nil {
					t.Fatal(err)
				}
				if found := m.caught(check.Check(h)); len(found) > 0 {
					t.Logf("round %d: %v", n+1, found[0])
					return
				}
			}
			t.Errorf("not caught in %d rounds from FAULTS_SEED=%d on", mutationRounds, seed)
		})
	}
}

// TestTheProgramWithstandsTheFaultsOfMutations: what they were caught by is no fault of the program's.
func TestTheProgramWithstandsTheFaultsOfMutations(t *testing.T) {
	var own []lane
	for _, m := range mutations() {
		if len(m.own) > 0 {
			own = append(own, m.lanes()[0])
			own[len(own)-1].name = m.name
		}
	}
	s := newTestStage(t, programs{binary: shared.Binary.Path}, 3)
	seed := uint64(setting(t, "FAULTS_SEED", int(time.Now().Unix())))
	h, err := s.round(seed, 2*mutationRound, own)
	if err != nil {
		t.Fatal(err)
	}
	if report := check.Check(h); len(report.Violations) > 0 {
		t.Errorf("FAULTS_SEED=%d:\n%s", seed, explain(h, report))
	}
}
