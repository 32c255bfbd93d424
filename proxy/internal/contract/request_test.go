package contract

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// TestRequest compares every header of a POST with docs/handlers.md.
func TestRequest(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	b.replica = launch(t, b.env().with(env{"FORWARD_URL": serviceURL(b.service) + "/queues/{queue}/in?from={queue}", "FORWARD_TIMEOUT": "30s"}))
	exchange := b.queue + "-exchange"
	must(t, shared.client.DeclareExchange(exchange, "fanout"))
	must(t, shared.client.Bind(b.queue, "", exchange))
	message := everyProperty(5)
	message.Headers["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	before := time.Now()
	must(t, shared.client.Publish(within(t), testkit.Message{Exchange: exchange, RoutingKey: "orders.ü", Publishing: message}))
	post := b.waitPosts(1)[0]
	if post.Path != "/queues/"+b.queue+"/in" {
		t.Errorf("path %q", post.Path)
	}
	got := post.Header.Clone()
	assertDeadline(t, got, before, 30*time.Second)
	assertOtherHeaders(t, got)
	want := http.Header{}
	for name, value := range map[string]string{
		"Idempotency-Key": "message-5", "Delivery-Attempt": "1", "User-Agent": "rabbitonce", "Content-Length": strconv.Itoa(len(message.Body)),
		"Content-Type": "application/x-order", "Content-Encoding": "gzip",
		"Authorization":  "Basic " + base64.StdEncoding.EncodeToString([]byte(serviceUser+":"+servicePassword)),
		"RabbitMQ-Queue": b.queue, "RabbitMQ-Exchange": exchange, "RabbitMQ-Routing-Key": "orders.%C3%BC",
		"RabbitMQ-Message-Id": "message-5", "RabbitMQ-Correlation-Id": "correlation-5", "RabbitMQ-Type": "order.created",
		"RabbitMQ-App-Id": "shop", "RabbitMQ-Reply-To": "replies", "RabbitMQ-Content-Encoding": "gzip",
		"RabbitMQ-Timestamp": "2024-03-01T00:00:03Z", "RabbitMQ-Priority": "5",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		// Scalars as text.
		"RabbitMQ-Header-nothing": "null", "RabbitMQ-Header-true": "true", "RabbitMQ-Header-false": "false",
		"RabbitMQ-Header-int8": strconv.Itoa(math.MinInt8), "RabbitMQ-Header-uint8": strconv.Itoa(math.MaxUint8),
		"RabbitMQ-Header-int16": strconv.Itoa(math.MinInt16), "RabbitMQ-Header-uint16": strconv.Itoa(math.MaxUint16),
		"RabbitMQ-Header-int32": strconv.Itoa(math.MinInt32), "RabbitMQ-Header-uint32": strconv.Itoa(math.MaxUint32),
		"RabbitMQ-Header-int64": strconv.Itoa(math.MinInt64), "RabbitMQ-Header-number": "5",
		"RabbitMQ-Header-float32": "1.5", "RabbitMQ-Header-float64": "0.1", "RabbitMQ-Header-decimal": "19.95",
		"RabbitMQ-Header-string": "gr%C3%BCn 100%25", "RabbitMQ-Header-empty": "", "RabbitMQ-Header-time": "2024-02-29T23:59:58Z",
		// The rest as JSON.
		"RabbitMQ-Header-bytes": `"AP8="`,
		"RabbitMQ-Header-array": `[null,1,"two","AP8=",[true],{"in":"array"}]`,
		"RabbitMQ-Header-table": `{"decimal":"0.005","deeper":{"list":[],"time":"2024-02-29T23:59:58Z"},"nothing":null,"number":9223372036854775807}`,
	} {
		want.Set(name, value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	b.waitOutcomes(map[string]float64{"done": 1})
	b.finish()
}

// assertDeadline checks Delivery-Deadline and removes it.
func assertDeadline(t *testing.T, h http.Header, sent time.Time, timeout time.Duration) {
	t.Helper()
	deadline, err := time.Parse(time.RFC3339, h.Get("Delivery-Deadline"))
	must(t, err)
	h.Del("Delivery-Deadline")
	if deadline.Before(sent.Add(timeout-time.Second)) || deadline.After(time.Now().Add(timeout+time.Second)) {
		t.Errorf("deadline %v for a request begun after %v with a timeout of %v", deadline, sent, timeout)
	}
}

// assertOtherHeaders checks the one header for names that HTTP servers drop or refuse, and removes it.
func assertOtherHeaders(t *testing.T, h http.Header) {
	t.Helper()
	text, err := url.PathUnescape(h.Get("RabbitMQ-Headers"))
	must(t, err)
	h.Del("RabbitMQ-Headers")
	var got map[string]any
	must(t, json.Unmarshal([]byte(text), &got))
	want := map[string]any{"under_score": "kept", "with space": 7.0, "ünïcode": "☃"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RabbitMQ-Headers (-want +got):\n%s", diff)
	}
}

// TestRequestOfBareMessage has nothing to tell but what is always told.
func TestRequestOfBareMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(amqp.Publishing{MessageId: "bare"})
	h := b.waitPosts(1)[0].Header.Clone()
	h.Del("Delivery-Deadline")
	h.Del("Authorization")
	want := http.Header{
		"Idempotency-Key": {"bare"}, "Delivery-Attempt": {"1"}, "User-Agent": {"rabbitonce"}, "Content-Length": {"0"},
		"Content-Type": {"application/octet-stream"}, "Rabbitmq-Queue": {b.queue}, "Rabbitmq-Message-Id": {"bare"},
		"Rabbitmq-Routing-Key": {b.queue},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	b.waitOutcomes(map[string]float64{"done": 1})
	b.finish()
}

// TestTooManyHeaders: what a publisher wrote never makes a request that a server refuses; what was left out is said.
func TestTooManyHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	headers := amqp.Table{"small": "kept", "huge": strings.Repeat("x", 20_000), "Idempotency-Key": "forged", "Host": "forged", "Content-Length": "1"}
	b.publish(amqp.Publishing{MessageId: "one", Headers: headers, Body: []byte("body")})
	post := b.waitPosts(1)[0]
	if post.Key != "one" || string(post.Body) != "body" {
		t.Errorf("key %q, body %q", post.Key, post.Body)
	}
	if h := post.Header; h.Get("RabbitMQ-Header-small") != "kept" || h.Get("RabbitMQ-Header-huge") != "" || h.Get("RabbitMQ-Header-Idempotency-Key") != "forged" {
		t.Errorf("headers: %v", h)
	}
	_, err := b.Logs.Wait(within(t), func(l testkit.LogLine) bool {
		return l.Fields["level"] == "WARN" && l.Fields["id"] == "one" && l.Fields["left_out"] == 1.0
	})
	if err != nil {
		t.Errorf("no log line says that headers were left out: %v", err)
	}
	b.waitOutcomes(map[string]float64{"done": 1})
	b.finish()
}
