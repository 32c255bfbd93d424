package forward

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestProbeConnect(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) { c.untilClosed() })
	client := newTestClient(t, server.url())
	if err := client.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	address := server.listener.Addr().String()
	server.close()
	if err := client.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("Probe = %v, want an error that names %s", err, address)
	}
}

func TestProbeHealthPath(t *testing.T) {
	var got *http.Request
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Location", "/fine")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL+"/hook", func(c *Config) { c.HealthPath = "/healthz?a=1" })
	for status = 200; status <= 599; status++ {
		err := client.Probe(t.Context())
		if ready := status < 300; ready != (err == nil) {
			t.Errorf("status %d: %v", status, err)
		}
		if err != nil && !(strings.Contains(err.Error(), server.URL+"/healthz") && strings.Contains(err.Error(), strconv.Itoa(status))) {
			t.Errorf("%q has to name address and status", err)
		}
	}
	if got.Method != "GET" || got.RequestURI != "/healthz?a=1" || got.Header.Get("User-Agent") != "rabbitonce" {
		t.Errorf("request = %s %s by %s", got.Method, got.RequestURI, got.UserAgent())
	}
	server.Close()
	if err := client.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), server.URL) {
		t.Errorf("Probe = %v, want an error that names %s", err, server.URL)
	}
}

func TestProbeUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	server := newRawServer(t, "unix", path, func(c *rawConn) { c.request(); c.send(answerOK) })
	for _, health := range []string{"", "/healthz"} {
		client := newTestClient(t, "unix:"+path+":/hook", func(c *Config) { c.HealthPath = health })
		if err := client.Probe(t.Context()); err != nil {
			t.Errorf("Probe with path %q: %v", health, err)
		}
	}
	if r := server.requests[0]; r.RequestURI != "/healthz" {
		t.Errorf("asked for %s", r.RequestURI)
	}
}

// Each health check opens a connection: one that is kept says nothing about a
// service that has stopped to accept.
func TestProbeOpensConnection(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		for c.request() {
			c.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") // could be kept
		}
	})
	client := newTestClient(t, server.url(), func(c *Config) { c.HealthPath = "/healthz" })
	for range 3 {
		if err := client.Probe(t.Context()); err != nil {
			t.Errorf("Probe: %v", err)
		}
	}
	if connections, _ := server.seen(); connections != 3 {
		t.Errorf("service saw %d connections, want 3", connections)
	}
}
