package forward

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Session tickets that follow the handshake must not pass for unasked bytes, and
// the connection is used again.
func TestPostTLS(t *testing.T) {
	remotes := map[string]int{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr]++
	}))
	// Asking for a certificate makes Go's server send tickets after the client's
	// last handshake message, as OpenSSL always does.
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL)
	conn := dialTrusting(t, client, server)
	waitForState(t, conn, socketHasData)
	client.transport = newTransport(nil, dialReturning(conn))
	for range 3 {
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k"}), Done)
	}
	if len(remotes) != 1 {
		t.Errorf("service saw %v, want one connection", remotes)
	}
}

// Bytes that wait under TLS are tickets on a fresh connection, and a reason not to
// trust one that was used before.
func TestGuardTLSWaitingBytes(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL)
	for name, reused := range map[string]bool{"fresh": false, "used before": true} {
		conn := dialTrusting(t, client, server)
		waitForState(t, conn, socketHasData)
		if reused {
			conn.arm(new(attempt))
		}
		conn.arm(new(attempt))
		if _, err := conn.Write([]byte("GET")); errors.Is(err, errStale) != reused {
			t.Errorf("%s: Write = %v", name, err)
		}
		_ = conn.Close()
	}
}

// dialTrusting connects and accepts the test server's certificate. With a session
// cache the client asks for tickets.
func dialTrusting(t *testing.T, client *Client, server *httptest.Server) *guardedConn {
	t.Helper()
	socket, err := client.target.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(socket, &tls.Config{
		RootCAs:            server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		ServerName:         "example.com",
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return guard(conn, socket)
}
