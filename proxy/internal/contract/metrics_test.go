package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// labels returns the values of labels as a map to zero.
func labels(values ...string) map[string]float64 {
	all := map[string]float64{}
	for _, v := range values {
		all[v] = 0
	}
	return all
}

// TestMetricsAtStart: each label value is there before its first event, so that a rate over the first is right.
func TestMetricsAtStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := b.metrics()
	for _, c := range []struct {
		metric, label string
		want          map[string]float64
	}{
		{"rabbitonce_deliveries_total", "outcome", labels("done", "unrecorded", "duplicate", "dead_letter", "parked", "returned")},
		{"rabbitonce_duplicates_total", "kind", labels("done", "busy", "waiting", "dead", "conflict")},
		{"rabbitonce_dead_letters_total", "reason", labels("rejected", "attempts-exhausted", "max-age", "unknown-outcome", "missing-id", "conflict")},
		{"rabbitonce_request_seconds_count", "outcome", labels("done", "defer", "fail", "reject", "unknown", "unreachable")},
		{"rabbitonce_session_ends_total", "why", labels(
			"cancelled", "queue-missing", "queue-down", "stream", "exclusive", "undecodable", "ack-timeout", "channel-closed", "connection-closed", "network",
			"unreachable", "tls", "login-refused", "vhost-missing", "permission", "limit", "settings", "paused", "other",
		)},
		{"rabbitonce_queue_paused", "why", labels("service", "store", "broker", "brake")},
	} {
		if diff := cmp.Diff(c.want, m.byLabel(c.metric, b.queue, c.label)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.metric, diff)
		}
	}
	queue := `{queue="` + b.queue + `"}`
	want := samples{
		"rabbitonce_posts_in_flight" + queue: 0, "rabbitonce_waiting" + queue: 0, "rabbitonce_unrecorded_total" + queue: 0,
		"rabbitonce_session_up" + queue: 1, "rabbitonce_service_up" + queue: 1, "rabbitonce_store_up": 1, "rabbitonce_lease_lost_total": 0,
		"rabbitonce_end_to_end_seconds_count" + queue: 0, "rabbitonce_claim_seconds_count": 0, `rabbitonce_build_info{version="dev"}`: 1,
	}
	for name, value := range want {
		if got, there := m[name]; !there || got != value {
			t.Errorf("%s is %v (there: %v), want %v", name, got, there, value)
		}
	}
}

// TestMetricsAgree counts what happened to each of a mix of messages.
func TestMetricsAgree(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"RETRY_MAX_ATTEMPTS": "2", "RETRY_BACKOFF": "10ms", "FORWARD_ON_UNKNOWN": "deadletter"})
	b.service.Behave(func(r testkit.Received) testkit.Action {
		switch kind, _, _ := strings.Cut(r.Key, "-"); {
		case kind == "reject":
			return testkit.Action{Status: 400}
		case kind == "fail", kind == "flaky" && r.Number == 1:
			return testkit.Action{Status: 500}
		case kind == "unknown":
			return testkit.Action{Close: true}
		case kind == "defer" && r.Number == 1:
			return testkit.Action{Status: 503}
		}
		return testkit.Action{}
	})
	const each = 5
	var first, later []amqp.Publishing
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		for _, kind := range []string{"good", "reject", "fail", "unknown", "defer", "flaky"} {
			first = append(first, text(kind+"-SECRETID-"+n, "body"))
		}
		first = append(first, text("", "missing "+n))
		later = append(later, text("good-SECRETID-"+n, "body"), text("flaky-SECRETID-"+n, "another body"))
	}
	b.publish(first...)
	outcomes := map[string]float64{"done": 3 * each, "dead_letter": 4 * each}
	b.waitOutcomes(outcomes)
	b.publish(later...)
	outcomes["duplicate"] = each
	outcomes["dead_letter"] += each
	b.waitOutcomes(outcomes)
	m := b.metrics()
	if sum := m.sum("rabbitonce_deliveries_total", b.queue); sum != float64(len(first)+len(later)) {
		t.Errorf("deliveries_total adds up to %v, %d messages were published", sum, len(first)+len(later))
	}
	for _, c := range []struct {
		metric, label string
		want          map[string]float64
	}{
		{"rabbitonce_dead_letters_total", "reason", map[string]float64{
			"rejected": each, "attempts-exhausted": each, "max-age": 0, "unknown-outcome": each, "missing-id": each, "conflict": each,
		}},
		{"rabbitonce_duplicates_total", "kind", map[string]float64{"done": each, "busy": 0, "waiting": 0, "dead": 0, "conflict": each}},
		{"rabbitonce_request_seconds_count", "outcome", map[string]float64{
			"done": 3 * each, "fail": 3 * each, "reject": each, "unknown": each, "defer": each, "unreachable": 0,
		}},
	} {
		if diff := cmp.Diff(c.want, m.byLabel(c.metric, b.queue, c.label)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.metric, diff)
		}
	}
	posts := float64(b.service.Journal.Count())
	if sum := m.sum("rabbitonce_request_seconds_count", b.queue); sum != posts {
		t.Errorf("request_seconds counts %v requests, the service saw %v", sum, posts)
	}
	if n := m[`rabbitonce_end_to_end_seconds_count{queue="`+b.queue+`"}`]; n != 3*each {
		t.Errorf("end_to_end_seconds counts %v", n)
	}
	_, page, err := b.Get(within(t), "/metrics")
	must(t, err)
	_, statusPage, err := b.Get(within(t), "/status")
	must(t, err)
	if strings.Contains(string(page)+string(statusPage), "SECRETID") {
		t.Error("a message ID is in /metrics or /status")
	}
	if n := len(b.letters(5 * each)); n != 5*each {
		t.Errorf("%d letters", n)
	}
	b.finish()
}
