package forward

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestPostUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	_ = closed.Close()
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = log.New(io.Discard, "", 0) // it notes the failed handshake
	selfSigned.StartTLS()
	t.Cleanup(selfSigned.Close)
	notTLS := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) { c.send("HTTP/1.1 400 Bad\r\n\r\n") })
	cases := map[string]struct{ url, names string }{
		"refused":            {"http://" + refused + "/", refused},
		"no such host":       {"http://service.invalid/", "service.invalid"},
		"no such socket":     {"unix:" + filepath.Join(t.TempDir(), "no.sock") + ":/", "no.sock"},
		"unknown authority":  {selfSigned.URL, "certificate"},
		"no TLS on the port": {strings.Replace(notTLS.url(), "http:", "https:", 1), "handshake"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := newTestClient(t, c.url).Post(t.Context(), &Request{IdempotencyKey: "k"})
			checkOutcome(t, result, Unreachable)
			if result.Err == nil || !strings.Contains(result.Err.Error(), c.names) {
				t.Errorf("error = %v, want it to name %s", result.Err, c.names)
			}
		})
	}
}

// What a service says before it was asked is no answer to the request.
func TestPostUnaskedAnswer(t *testing.T) {
	said := make(chan struct{})
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		c.send(answerOK)
		close(said)
		c.untilClosed()
	})
	client := newTestClient(t, server.url())
	conn, err := client.target.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := newConn(conn, conn)
	<-said
	waitForState(t, k, socketHasData)
	client.dial = dialReturning(k)
	checkOutcome(t, client.Post(t.Context(), &Request{}), Unreachable)
}

func TestPostUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	server := newRawServer(t, "unix", path, func(c *rawConn) {
		for c.request() {
			c.send(answerOK)
		}
	})
	client := newTestClient(t, "unix:"+path+":/in/{queue}?a=1")
	for range 2 {
		checkOutcome(t, client.Post(t.Context(), &Request{Body: []byte("x")}), Done)
	}
	if connections, requests := server.seen(); connections != 1 || requests != 2 {
		t.Errorf("service saw %d connections and %d requests, want 1 and 2", connections, requests)
	}
	if r := server.requests[0]; r.Host != "localhost" || r.RequestURI != "/in/orders?a=1" || r.Method != "POST" {
		t.Errorf("request = %s %s for %s", r.Method, r.RequestURI, r.Host)
	}
}

func TestPostLocalhostEitherFamily(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		probe, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("no %s on this system", address)
			continue
		}
		_ = probe.Close()
		server := newRawServer(t, "tcp", address, func(c *rawConn) { c.request(); c.send(answerOK) })
		_, port, _ := net.SplitHostPort(server.listener.Addr().String())
		client := newTestClient(t, "http://localhost:"+port+"/")
		checkOutcome(t, client.Post(t.Context(), &Request{}), Done)
		if err := client.Probe(t.Context()); err != nil {
			t.Errorf("Probe: %v", err)
		}
	}
}

// At most Concurrency connections are kept, and they are used again.
func TestPostReusesConnections(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		for c.request() {
			c.send(answerOK)
		}
	})
	client := newTestClient(t, server.url(), func(c *Config) { c.Concurrency = 1 })
	for i := range 100 {
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: fmt.Sprint(i)}), Done)
	}
	if connections, requests := server.seen(); connections != 1 || requests != 100 {
		t.Errorf("service saw %d connections and %d requests, want 1 and 100", connections, requests)
	}
}

// TestPostKeepsNoConnection: the operator may say so. A service that closes right behind an answer, which said that the
// connection is kept, then takes no request with it.
func TestPostKeepsNoConnection(t *testing.T) {
	for _, header := range []string{"Connection: close", "connection: Close"} {
		t.Run(header, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
				for c.request() {
					c.send(answerOK)
				}
			})
			client := newTestClient(t, server.url(), func(c *Config) { c.Headers = header })
			const posts = 20
			for i := range posts {
				checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: fmt.Sprint(i)}), Done)
			}
			if connections, requests := server.seen(); connections != posts || requests != posts {
				t.Fatalf("service saw %d connections and %d requests, want %d of each", connections, requests, posts)
			}
			server.mu.Lock()
			defer server.mu.Unlock()
			for _, request := range server.requests {
				if got := request.Header["Connection"]; len(got) != 1 || got[0] != "close" {
					t.Fatalf("Connection: %q, want close", got)
				}
			}
		})
	}
}

// Proxy variables are for the way out of the network, not to the neighbour.
func TestPostIgnoresProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) { c.request(); c.send(answerOK) })
	checkOutcome(t, newTestClient(t, server.url()).Post(t.Context(), &Request{}), Done)
}
