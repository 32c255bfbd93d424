package dedup

import "github.com/prometheus/client_golang/prometheus"

// metrics counts what the store does. Every label value exists from the start.
type metrics struct {
	claimSeconds prometheus.Histogram
	leaseLost    prometheus.Counter
	operations   *prometheus.CounterVec // operation, result
	ok, failed   map[word]prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		claimSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rabbitonce_claim_seconds",
			Help:    "How long a claim took, from the call to its answer, failed ones included.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		leaseLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rabbitonce_lease_lost_total",
			Help: "Leases that the store gave to another, or that could not be renewed in time.",
		}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rabbitonce_store_operations_total",
			Help: "Operations on claim records, by whether the store answered.",
		}, []string{"operation", "result"}),
		ok:     map[word]prometheus.Counter{},
		failed: map[word]prometheus.Counter{},
	}
	for _, w := range words() {
		m.ok[w] = m.operations.WithLabelValues(string(w), "ok")
		m.failed[w] = m.operations.WithLabelValues(string(w), "error")
	}
	if registerer != nil {
		registerer.MustRegister(m.claimSeconds, m.leaseLost, m.operations)
	}
	return m
}

// count records that the store answered, or did not.
func (m *metrics) count(w word, err error) {
	if err != nil {
		m.failed[w].Inc()
		return
	}
	m.ok[w].Inc()
}
