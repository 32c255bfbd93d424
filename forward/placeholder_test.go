package forward

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressOf(t *testing.T) {
	message := &Request{
		RoutingKey: "eu.orders/new", Type: "order created", IdempotencyKey: "id?1",
		Headers: map[string]any{"tenant": "ümit", "n": int32(7), "a/b": "x", "dot": ".", "empty": ""},
	}
	cases := map[string]struct{ raw, want string }{
		"fixed":           {"http://app/{queue}?a=1", "/q?a=1"},
		"routing key":     {"http://app/k/{routing_key}/x", "/k/eu.orders%2Fnew/x"},
		"type and id":     {"http://app/{type}/{id}", "/order%20created/id%3F1"},
		"header":          {"http://app/{header:tenant}/{header:n}", "/%C3%BCmit/7"},
		"header, slash":   {"http://app/{header:a/b}", "/x"},
		"within":          {"http://app/v1.{header:n}-{queue}", "/v1.7-q"},
		"query":           {"http://app/p?t={type}&m={header:missing}&i={id}", "/p?t=order+created&m=&i=id%3F1"},
		"no path":         {"http://app?k={routing_key}", "/?k=eu.orders%2Fnew"},
		"a dot in a name": {"http://app/.{header:n}", "/.7"},
		"socket":          {"unix:/s.sock:/a/{id}", "/a/id%3F1"},
	}
	for name, c := range cases {
		target, err := newTarget("FORWARD_URL", c.raw, "q")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := target.addressOf(message)
		if err != nil || got.RequestURI() != c.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
	for _, raw := range []string{
		"http://app/{header:missing}", "http://app/{header:empty}/x", "http://app/{header:dot}", "http://app/.{header:dot}",
	} {
		target, err := newTarget("FORWARD_URL", raw, "q")
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, err := target.addressOf(message); !errors.Is(err, errAddress) {
			t.Errorf("%s became %v, %v, want it refused", raw, got, err)
		}
	}
	target, _ := newTarget("FORWARD_URL", "http://u:p@app/a/{header:tenant}?k={id}", "q")
	if got := target.String(); got != "http://app/a/{header:tenant}" {
		t.Errorf("shown as %s", got)
	}
}

// FuzzAddressOf: whatever a message holds stays one segment and one value.
func FuzzAddressOf(f *testing.F) {
	for _, text := range []string{"orders", "..", ".", "", "a/b", "a?b=c&d", "%2e%2e", "é", "{id}", "\r\nHost: x", "#"} {
		f.Add(text)
	}
	target, err := newTarget("FORWARD_URL", "http://app/a/{type}/b?q={type}", "queue")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := target.addressOf(&Request{Type: text})
		if err != nil {
			if text != "" && len(text) < maxAddress/8 && !slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' }), func(part string) bool { return part == "." || part == ".." }) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		path, query, _ := strings.Cut(u.RequestURI(), "?")
		segment, err := url.PathUnescape(strings.Split(path, "/")[2])
		if strings.Count(path, "/") != 3 || err != nil || segment != text || u.Query().Get("q") != text || strings.ContainsAny(query, "&#") {
			t.Errorf("%q became %s", text, u.RequestURI())
		}
	})
}

// A message that the URL cannot be made for is rejected without a request.
func TestPostWithoutAddress(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL+"/{type}")
	result := client.Post(t.Context(), &Request{IdempotencyKey: "k"})
	if result.Outcome != Reject || !errors.Is(result.Err, errAddress) || !strings.Contains(result.Err.Error(), "{type}") || result.Status != 0 {
		t.Errorf("%+v", result)
	}
	for _, typ := range []string{"a/../../admin", `a\..\admin`, "./b", strings.Repeat("x", 4001)} { // some servers decode before they resolve
		if result := client.Post(t.Context(), &Request{Type: typ}); result.Outcome != Reject || !errors.Is(result.Err, errAddress) {
			t.Errorf("%.20s: %+v", typ, result)
		}
	}
	checkOutcome(t, client.Post(t.Context(), &Request{Type: "t"}), Done)
	if requests != 1 {
		t.Errorf("%d requests, want 1", requests)
	}
}

// newClient is a client with these settings, the rest as by default.
func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	return newTestClient(t, cfg.URL, func(c *Config) {
		timeout, concurrency := c.Timeout, c.Concurrency
		*c = cfg
		c.Timeout, c.Concurrency = timeout, concurrency
		if c.OnUnknown == "" {
			c.OnUnknown = UnknownRetry
		}
	})
}

func TestOwnHeaders(t *testing.T) {
	var got http.Header
	host := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, host = r.Header, r.Host }))
	t.Cleanup(server.Close)
	client := newClient(t, Config{URL: strings.Replace(server.URL, "http://", "http://user:pw@", 1), HealthPath: "/healthz", Headers: strings.Join([]string{
		"Authorization: Bearer abc", "x-tenant: {header:tenant}", "", "X-From:  {queue}/{routing_key} ", "Host: shop.internal", "X-Nothing: {type}", "User-Agent: mine",
		`X-Json: {"user":"u","list":[{}]}`, "X-Long: {header:long}",
	}, "\r\n")})
	result := client.Post(t.Context(), &Request{RoutingKey: "a\nb", Headers: map[string]any{"tenant": "ü", "long": strings.Repeat("x", 1025)}})
	if checkOutcome(t, result, Done); result.DroppedHeaders != 1 {
		t.Errorf("%d headers left out, want the long one", result.DroppedHeaders)
	}
	want := map[string]string{
		"Authorization": "Bearer abc", "X-Tenant": "%C3%BC", "X-From": "orders/a%0Ab", "X-Nothing": "", "User-Agent": "mine", "X-Json": `{"user":"u","list":[{}]}`, "X-Long": "",
	}
	for name, value := range want {
		if diff := cmp.Diff(value, strings.Join(got.Values(name), "|")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if host != "shop.internal" {
		t.Errorf("Host: %s", host)
	}
	got = nil
	if err := client.Probe(t.Context()); err != nil || got.Get("Authorization") != "Bearer abc" || host != "shop.internal" {
		t.Errorf("health check: %v with %v", err, got)
	}
}

func TestIdempotencyKeyQuoted(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "a": `"a"`, `a"b\c`: `"a\"b\\c"`, "é": `"%C3%A9"`, " a ": `"%20a%20"`,
	} {
		if got := KeyQuoted.write(idempotencyKey(id)); got != want {
			t.Errorf("%q became %s, want %s", id, got, want)
		}
	}
}

func TestContentTypeSetting(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Content-Type") }))
	t.Cleanup(server.Close)
	client := newClient(t, Config{URL: server.URL, ContentType: "text/xml"})
	for sent, want := range map[string]string{"": "text/xml", "application/x": "application/x", "b\x01d": "text/xml"} {
		checkOutcome(t, client.Post(t.Context(), &Request{ContentType: sent, Body: []byte("{}")}), Done)
		if got != want {
			t.Errorf("%q was sent as %q, want %q", sent, got, want)
		}
	}
}

// The CA is read for each connection: a service behind a new one is reached without a restart.
func TestCAFile(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write := func(der []byte) {
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(server.Certificate().Raw)
	client := newClient(t, Config{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), CAFile: ca, Headers: ""})
	client.target.url.Host = strings.Replace(client.target.url.Host, "localhost", "example.com", 1) // the name in the certificate
	checkOutcome(t, client.Post(t.Context(), &Request{}), Done)
	if err := os.WriteFile(ca, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	client.pool.drop()
	result := client.Post(t.Context(), &Request{})
	if result.Outcome != Unreachable || !strings.Contains(result.Err.Error(), "FORWARD_TLS_CA_FILE") {
		t.Errorf("with an empty file: %+v", result)
	}
	write(server.Certificate().Raw)
	checkOutcome(t, client.Post(t.Context(), &Request{}), Done)

	untrusting := newClient(t, Config{URL: server.URL})
	if result := untrusting.Post(t.Context(), &Request{}); result.Outcome != Unreachable || !strings.Contains(result.Err.Error(), "certificate") {
		t.Errorf("without a CA: %+v", result)
	}
}

func TestLookup(t *testing.T) {
	var asked, auth string
	status := 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, auth = r.Method+" "+r.RequestURI, r.Header.Get("Authorization")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	client := newClient(t, Config{
		URL: "http://127.0.0.1:1/", OnUnknown: UnknownLookup, LookupURL: strings.Replace(server.URL, "http://", "http://me:pw@", 1) + "/{queue}/{id}?full",
	})
	for code, want := range map[int]Finding{200: FoundDone, 204: FoundDone, 299: FoundDone, 404: NeverDone, 410: NotKnown, 302: NotKnown, 500: NotKnown, 503: NotKnown, 401: NotKnown} {
		status = code
		got, err := client.Lookup(t.Context(), "a/b")
		if got != want || (err == nil) != (want != NotKnown) {
			t.Errorf("%d is %s, %v, want %s", code, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%v shows the password", err)
		}
		if asked != "GET /orders/a%2Fb?full" || auth != "Basic bWU6cHc=" {
			t.Errorf("asked %s with %s", asked, auth)
		}
		if err := client.ProbeLookup(t.Context(), "random"); (err == nil) != (code == 404) {
			t.Errorf("probe with %d: %v", code, err)
		}
	}
	server.Close()
	if got, err := client.Lookup(t.Context(), "a"); got != NoAnswer || err == nil {
		t.Errorf("nobody there: %s, %v", got, err)
	}
	here := newClient(t, Config{URL: server.URL, OnUnknown: UnknownLookup, LookupURL: server.URL + "/{id}"})
	if got, err := here.Lookup(t.Context(), "a"); got != NoService || err == nil {
		t.Errorf("the service itself is not there: %s, %v", got, err)
	}
	if got, err := client.Lookup(t.Context(), ".."); got != NotKnown || err == nil {
		t.Errorf("an ID that is no name in a path: %s, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := client.Lookup(ended, "a"); got != NoAnswer || err == nil {
		t.Errorf("ended: %s, %v", got, err)
	}
	if err := newClient(t, Config{URL: "http://app/"}).ProbeLookup(t.Context(), "a"); err != nil {
		t.Errorf("without lookups: %v", err)
	}
}

// What is asked for is what the service has got: the key of the POST. And what FORWARD_HEADERS and the URL say to the
// service is said to nobody else.
func TestLookupAsksForTheKey(t *testing.T) {
	var sent, asked, host, auth string
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent = r.Header.Get("Idempotency-Key")
			return
		}
		asked, host, auth = strings.TrimPrefix(r.URL.Path, "/done/"), r.Host, r.Header.Get("Authorization")
	})
	server, other := httptest.NewServer(handler), httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(other.Close)
	cfg := Config{
		URL: strings.Replace(server.URL, "http://", "http://me:pw@", 1), OnUnknown: UnknownLookup, LookupURL: server.URL + "/done/{id}", Headers: "Host: payments.internal",
	}
	client := newClient(t, cfg)
	for _, id := range []string{"plain", "100%", "Zürich", "a/b", "sha256:1", strings.Repeat("x", 600), "a b"} {
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: id}), Done)
		if _, err := client.Lookup(t.Context(), id); err != nil || asked != sent || sent == "" {
			t.Errorf("ID %.20q: sent as %.40q, asked for %.40q, %v", id, sent, asked, err)
		}
		if host != "payments.internal" || auth == "" {
			t.Errorf("asked %q with %q", host, auth)
		}
	}
	cfg.LookupURL = other.URL + "/done/{id}"
	if _, err := newClient(t, cfg).Lookup(t.Context(), "a"); err != nil || host == "payments.internal" || auth != "" {
		t.Errorf("another server was asked as %q with %q, %v", host, auth, err)
	}
}
