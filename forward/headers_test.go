package forward

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// receive posts a request and returns the headers as the service gets them.
func receive(t *testing.T, r *Request) (http.Header, Result) {
	t.Helper()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(server.Close)
	result := newTestClient(t, server.URL).Post(t.Context(), r)
	checkOutcome(t, result, Done)
	return got, result
}

func TestHeadersFull(t *testing.T) {
	started := time.Now()
	got, result := receive(t, &Request{
		Queue: "orders", Exchange: "shop", RoutingKey: "order.created", IdempotencyKey: "id-1",
		Attempt: 3, OutcomeUnknown: true, Timeout: 10 * time.Second,
		MessageID: "id-1", CorrelationID: "c", Type: "Order", AppID: "shop", ReplyTo: "amq.reply",
		ContentType: "text/plain", ContentEncoding: "gzip",
		Timestamp: time.Unix(1700000000, 0), Priority: 9, Redelivered: true,
		Headers: map[string]any{
			"tenant": "acme", "x-retries": int32(2), "nested": map[string]any{"a": []byte{1}},
			"odd name": "ü", "under_score": true, "": nil,
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			"tracestate":  "a=1", "baggage": "user=%41",
		},
		Body: []byte("x"),
	})
	deadline, err := time.Parse(time.RFC3339, got.Get("Delivery-Deadline"))
	if err != nil || deadline.Before(started.Add(9900*time.Millisecond)) || deadline.After(time.Now().Add(10*time.Second)) {
		t.Errorf("Delivery-Deadline = %q, want ten seconds from the start", got.Get("Delivery-Deadline"))
	}
	got.Del("Delivery-Deadline")
	want := http.Header{
		"User-Agent": {"rabbitonce"}, "Content-Length": {"1"}, "Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"},
		"Idempotency-Key": {"id-1"}, "Delivery-Attempt": {"3"}, "Delivery-Outcome-Unknown": {"true"},
		"Rabbitmq-Queue": {"orders"}, "Rabbitmq-Exchange": {"shop"}, "Rabbitmq-Routing-Key": {"order.created"},
		"Rabbitmq-Message-Id": {"id-1"}, "Rabbitmq-Correlation-Id": {"c"}, "Rabbitmq-Type": {"Order"}, "Rabbitmq-App-Id": {"shop"},
		"Rabbitmq-Reply-To": {"amq.reply"}, "Rabbitmq-Content-Encoding": {"gzip"},
		"Rabbitmq-Timestamp": {"2023-11-14T22:13:20Z"}, "Rabbitmq-Priority": {"9"}, "Rabbitmq-Redelivered": {"true"},
		"Rabbitmq-Header-Tenant": {"acme"}, "Rabbitmq-Header-X-Retries": {"2"}, "Rabbitmq-Header-Nested": {`{"a":"AQ=="}`},
		"Rabbitmq-Headers": {`{"":null,"odd name":"%C3%BC","under_score":true}`},
		"Traceparent":      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Tracestate":       {"a=1"}, "Baggage": {"user=%41"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if result.DroppedHeaders != 0 {
		t.Errorf("dropped %d headers, want 0", result.DroppedHeaders)
	}
}

func TestHeadersEmptyOnesAreOmitted(t *testing.T) {
	got, _ := receive(t, &Request{Attempt: 1})
	got.Del("Delivery-Deadline")
	want := http.Header{
		"User-Agent": {"rabbitonce"}, "Content-Length": {"0"}, "Content-Type": {"application/octet-stream"},
		"Delivery-Attempt": {"1"}, "Rabbitmq-Queue": {"orders"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestHeadersCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "me" || password != "p:w" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	client := newTestClient(t, strings.Replace(server.URL, "http://", "http://me:p%3Aw@", 1), func(c *Config) { c.HealthPath = "/health" })
	checkOutcome(t, client.Post(t.Context(), &Request{}), Done)
	if err := client.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	sum := sha256.Sum256([]byte(long))
	cases := map[string]string{
		"":                       "",
		"id-1":                   "id-1",
		" a\nü% ":                "%20a%0A%C3%BC%25%20",
		strings.Repeat("a", 512): strings.Repeat("a", 512),
		long:                     "sha256:" + hex.EncodeToString(sum[:]),
	}
	for id, want := range cases {
		got, _ := receive(t, &Request{IdempotencyKey: id, MessageID: id})
		if key := got.Get("Idempotency-Key"); key != want {
			t.Errorf("key of %.20q = %.80q, want %.80q", id, key, want)
		}
	}
	if key := idempotencyKey(strings.Repeat("a", 513)); !strings.HasPrefix(key, "sha256:") {
		t.Errorf("key of 513 bytes = %q, want its digest", key)
	}
}

func TestHeadersLongIDTravelsWhenItFits(t *testing.T) {
	id := strings.Repeat("x", 5000)
	got, result := receive(t, &Request{IdempotencyKey: id, MessageID: id})
	if got.Get("RabbitMQ-Message-Id") != id || result.DroppedHeaders != 0 {
		t.Error("an ID of 5000 bytes did not travel in RabbitMQ-Message-Id")
	}
	id = strings.Repeat("x", 10<<10)
	got, result = receive(t, &Request{IdempotencyKey: id, MessageID: id})
	if got.Get("RabbitMQ-Message-Id") != "" || result.DroppedHeaders != 1 {
		t.Errorf("an ID of 10 KB: %d dropped, want 1", result.DroppedHeaders)
	}
}

func TestForeignNames(t *testing.T) {
	got, _ := receive(t, &Request{IdempotencyKey: "k", Headers: map[string]any{
		"a-b": 1, "A-B": 2, "single": 3,
		"Host": "evil", "Content-Length": 7, "Connection": "close", "Transfer-Encoding": "chunked", "Idempotency-Key": "evil",
		"a:b": 4, "a\r\nb": 5, "é": 6, "Traceparent": "x", "tracestate": "bad\nvalue", "baggage": 7,
	}})
	want := map[string]string{
		"RabbitMQ-Header-single": "3", "RabbitMQ-Header-Host": "evil", "RabbitMQ-Header-Content-Length": "7",
		"RabbitMQ-Header-Connection": "close", "RabbitMQ-Header-Transfer-Encoding": "chunked", "RabbitMQ-Header-Idempotency-Key": "evil",
		"RabbitMQ-Header-Traceparent": "x", "RabbitMQ-Header-tracestate": "bad%0Avalue", "RabbitMQ-Header-baggage": "7",
		"Idempotency-Key": "k", "Content-Length": "0", "Traceparent": "", "Connection": "", "RabbitMQ-Header-a-b": "",
		"RabbitMQ-Headers": `{"A-B":2,"a\r\nb":5,"a-b":1,"a:b":4,"%C3%A9":6}`,
	}
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s = %q, want %q", name, got.Get(name), value)
		}
	}
}

func TestForeignBudget(t *testing.T) {
	headers := map[string]any{"small": "s", "odd name": "o"}
	for i := range 10 {
		headers[fmt.Sprintf("h%d", i)] = strings.Repeat("v", 600+i)
	}
	headers["huge"] = strings.Repeat("v", 20000)
	headers["huge odd"] = strings.Repeat("v", 20000)
	got, result := receive(t, &Request{MessageID: "m", Headers: headers})
	if result.DroppedHeaders != 3 { // both huge ones, and the largest of the rest
		t.Errorf("dropped %d, want 3", result.DroppedHeaders)
	}
	for name, want := range map[string]bool{"small": true, "h0": true, "h8": true, "h9": false, "huge": false} {
		if has := got.Get("RabbitMQ-Header-"+name) != ""; has != want {
			t.Errorf("header %s is there: %v, want %v", name, has, want)
		}
	}
	if got.Get("RabbitMQ-Headers") != `{"odd name":"o"}` || got.Get("RabbitMQ-Message-Id") != "m" {
		t.Errorf("small ones are missing: %v", got)
	}
}

func TestForeignCount(t *testing.T) {
	headers := map[string]any{}
	for i := range 200 {
		headers[fmt.Sprintf("h%d", i)] = i
	}
	got, result := receive(t, &Request{Headers: headers})
	var rest map[string]int
	if err := json.Unmarshal([]byte(got.Get("RabbitMQ-Headers")), &rest); err != nil {
		t.Fatal(err)
	}
	if len(rest) != 200-maxForeignCount || len(got) > 70 || result.DroppedHeaders != 0 {
		t.Errorf("%d in JSON, %d headers in all, %d dropped", len(rest), len(got), result.DroppedHeaders)
	}
}

// FuzzHeaders: whatever a publisher writes, the request is legal, says the same to
// a server as to us, and stays in its bounds.
func FuzzHeaders(f *testing.F) {
	f.Add("id", "text/plain", "utf-8", "name", "value", "Name", []byte("x"))
	f.Add("\r\n\r\nGET / HTTP/1.1", "a\nb", "gzip", "Host", "\x00", "host", []byte{})
	f.Add(" ü%", "é", "x\r\ny: z", "a\r\nb", "ü", "", []byte(" {"))
	f.Fuzz(func(t *testing.T, id, contentType, encoding, name, value, other string, body []byte) {
		static := staticHeaders("q", "")
		client := &Client{queue: "q", static: static, common: renderStatic(static)}
		r := &Request{
			Queue: other, Exchange: value, RoutingKey: name, IdempotencyKey: id, MessageID: id, CorrelationID: value,
			Type: name, AppID: other, ReplyTo: value, ContentType: contentType, ContentEncoding: encoding, Body: body,
			Headers: map[string]any{name: value, other: []any{value, []byte(value), map[string]any{other: value}}, "traceparent": value},
		}
		header := headersOf(client, r)
		foreign := 0
		for field, values := range header {
			if !isToken(field) || len(values) != 1 || (values[0] != "" && !isLegalValue(values[0])) {
				t.Fatalf("illegal header %q: %q", field, values)
			}
			if strings.HasPrefix(field, foreignRest[:len(foreignRest)-1]) {
				foreign += len(field) + len(values[0]) + 4
			}
		}
		if foreign > maxForeign || len(header["Idempotency-Key"]) > 0 && len(header["Idempotency-Key"][0]) > maxKey {
			t.Fatalf("out of bounds: %d bytes foreign", foreign)
		}
		client.hostHeader = "h"
		head, _ := client.appendHead(nil, "/", r, time.Unix(0, 0))
		checkRead(t, append(head, body...), len(header), body, id)
	})
}

// headersOf returns the headers of a request in the spelling in which they are sent.
func headersOf(c *Client, r *Request) map[string][]string {
	var s headerSet
	c.appendHeaders(&s, r, time.Unix(0, 0))
	header := map[string][]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(s.text), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		header[name] = append(header[name], value)
	}
	return header
}

// checkRead reads the request as a server would.
func checkRead(t *testing.T, request []byte, headers int, body []byte, id string) {
	t.Helper()
	wire := bytes.NewBuffer(request)
	read, err := http.ReadRequest(bufio.NewReader(wire))
	if err != nil {
		t.Fatalf("a server cannot read the request: %v", err)
	}
	got, err := io.ReadAll(read.Body)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("body came out as %q, %v", got, err)
	}
	if key, _ := url.PathUnescape(read.Header.Get("Idempotency-Key")); key != id && !strings.HasPrefix(key, "sha256:") {
		t.Fatalf("key came out as %q", key)
	}
	want := headers + 1 // Content-Length
	if len(read.Header) != want || wire.Len() != 0 {
		t.Fatalf("%d headers came out as %d, %d bytes too many", want, len(read.Header), wire.Len())
	}
}

func isToken(s string) bool {
	for i := range len(s) {
		if !isPlainName(s[i : i+1]) {
			return false
		}
	}
	return s != ""
}
