package dedup

import (
	"context"
	"testing"
)

func TestProbeLeavesNothingBehind(t *testing.T) {
	ctx := context.Background()
	for name, s := range map[string]*Store{"memory": openStore(t, Config{Store: StoreMemory}), "redis": openStore(t, shared.config())} {
		t.Run(name, func(t *testing.T) {
			key := testKey(t)
			for range 2 {
				if err := s.Probe(ctx, key); err != nil {
					t.Fatal(err)
				}
			}
			if rec, found, err := s.Inspect(ctx, key); found || err != nil {
				t.Errorf("left %+v, %v", rec, err)
			}
			c, err := s.Claim(ctx, request(key))
			if err != nil || c.Verdict != Claimed {
				t.Fatalf("claim: %v, %v", c.Verdict, err)
			}
			if err := s.Probe(ctx, key); err != nil {
				t.Errorf("probe of a key in use: %v", err)
			}
			if rec, _, _ := s.Inspect(ctx, key); rec.State != StateProcessing {
				t.Errorf("the probe changed the record: %+v", rec)
			}
		})
	}
}
