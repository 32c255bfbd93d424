package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// metrics are what this package counts. Every label value exists from the start, so that a rate over a first event is
// right; an ID is never a label.
type metrics struct {
	deliveries  *prometheus.CounterVec
	duplicates  *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	missingID   *prometheus.CounterVec
	unrecorded  *prometheus.CounterVec
	sessionEnds *prometheus.CounterVec
	requests    *prometheus.HistogramVec
	endToEnd    *prometheus.HistogramVec
	sessionUp   *prometheus.GaugeVec
	serviceUp   *prometheus.GaugeVec
	lettersUp   *prometheus.GaugeVec
	parkingUp   *prometheus.GaugeVec
	storeUp     prometheus.Gauge
	registerer  prometheus.Registerer
}

// queueMetrics are one queue's, looked up once.
type queueMetrics struct {
	fates       map[fate]prometheus.Counter
	duplicates  map[duplicate]prometheus.Counter
	deadLetters map[dedup.Reason]prometheus.Counter
	requests    map[forward.Outcome]prometheus.Observer
	sessionEnds map[sessionEnd]prometheus.Counter
	missingID   prometheus.Counter
	unrecorded  prometheus.Counter
	endToEnd    prometheus.Observer
}

// seconds are histogram buckets from half a millisecond to two minutes.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "rabbitonce", Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "rabbitonce", Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "rabbitonce", Name: name, Help: help, Buckets: seconds}, labels)
		r.MustRegister(h)
		return h
	}
	gauge("build_info", "Always 1; the label is the program's version.", "version").WithLabelValues(version).Set(1)
	return &metrics{
		registerer:  r,
		deliveries:  counter("deliveries_total", "Deliveries that ended here, by how they ended.", "queue", "outcome"),
		duplicates:  counter("duplicates_total", "Times a copy met its message, by the state the message was in.", "queue", "kind"),
		deadLetters: counter("dead_letters_total", "Dead letters that the broker confirmed, by reason.", "queue", "reason"),
		missingID:   counter("missing_id_total", "Deliveries without an ID where DEDUP_ID_FROM looks, whatever became of them.", "queue"),
		unrecorded:  counter("unrecorded_total", "Successes that were acknowledged before they could be recorded.", "queue"),
		sessionEnds: counter("session_ends_total", "Times that consuming the queue ended or could not begin, by the reason.", "queue", "why"),
		requests:    histogram("request_seconds", "Time of a request to the service, by its outcome.", "queue", "outcome"),
		endToEnd:    histogram("end_to_end_seconds", "Time from a delivery's arrival to its recorded success.", "queue"),
		sessionUp:   gauge("session_up", "1 while the queue is being consumed.", "queue"),
		serviceUp:   gauge("service_up", "1 while the queue's service answers.", "queue"),
		lettersUp:   gauge("dead_letter_publishing_up", "0 while a dead letter cannot be published.", "queue"),
		parkingUp:   gauge("wait_queue_publishing_up", "0 while a message cannot be moved to a wait queue.", "queue"),
		storeUp:     gauge("store_up", "1 while the store answers.").WithLabelValues(),
	}
}

func (m *metrics) queue(name string) *queueMetrics {
	q := &queueMetrics{
		fates: map[fate]prometheus.Counter{}, duplicates: map[duplicate]prometheus.Counter{},
		deadLetters: map[dedup.Reason]prometheus.Counter{}, requests: map[forward.Outcome]prometheus.Observer{},
		sessionEnds: map[sessionEnd]prometheus.Counter{},
		missingID:   m.missingID.WithLabelValues(name), unrecorded: m.unrecorded.WithLabelValues(name), endToEnd: m.endToEnd.WithLabelValues(name),
	}
	for _, f := range fates() {
		q.fates[f] = m.deliveries.WithLabelValues(name, f.String())
	}
	for _, d := range duplicates() {
		q.duplicates[d] = m.duplicates.WithLabelValues(name, d.String())
	}
	for _, e := range sessionEnds() {
		q.sessionEnds[e] = m.sessionEnds.WithLabelValues(name, e.String())
	}
	for _, r := range dedup.Reasons() {
		q.deadLetters[r] = m.deadLetters.WithLabelValues(name, r.String())
	}
	for _, o := range forward.Outcomes() {
		q.requests[o] = m.requests.WithLabelValues(name, o.String())
	}
	return q
}

// counts shows what a queue counts itself: asked at each scrape.
func (m *metrics) counts(queue string, inFlight, waiting func() int64) {
	labels := prometheus.Labels{"queue": queue}
	m.asked("posts_in_flight", "Requests to the service under way.", labels, func() float64 { return float64(inFlight()) })
	m.asked("waiting", "Deliveries held here without a request under way.", labels, func() float64 { return float64(waiting()) })
}

// paused shows whether a queue stands still, by what it waits for: asked at each scrape.
func (m *metrics) paused(queue, why string, isPaused func() bool) {
	m.asked("queue_paused", "1 while the queue stands still, by what it waits for.", prometheus.Labels{"queue": queue, "why": why}, func() float64 {
		if isPaused() {
			return 1
		}
		return 0
	})
}

// asked is a gauge whose value is asked for at each scrape.
func (m *metrics) asked(name, help string, labels prometheus.Labels, value func() float64) {
	m.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "rabbitonce", Name: name, Help: help, ConstLabels: labels}, value))
}
