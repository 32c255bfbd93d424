package dedup

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricsExistFromTheStart(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := openStore(t, shared.config(), WithRegisterer(registry))
	want := map[string]float64{"rabbitonce_claim_seconds": 0, "rabbitonce_lease_lost_total": 0}
	for _, w := range words() {
		want["rabbitonce_store_operations_total "+string(w)+" ok"] = 0
		want["rabbitonce_store_operations_total "+string(w)+" error"] = 0
	}
	if diff := cmp.Diff(want, gather(t, registry)); diff != "" {
		t.Errorf("at the start (-want +got):\n%s", diff)
	}
	if _, err := s.Claim(context.Background(), request(testKey(t))); err != nil {
		t.Fatal(err)
	}
	want["rabbitonce_claim_seconds"] = 1
	want["rabbitonce_store_operations_total claim ok"] = 1
	if diff := cmp.Diff(want, gather(t, registry)); diff != "" {
		t.Errorf("after a claim (-want +got):\n%s", diff)
	}
}

// gather returns each series' count, by its name and label values.
func gather(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}
