package forward

import (
	"crypto/tls"
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
	client.dial = dialReturning(conn)
	for range 3 {
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k"}), Done)
	}
	if len(remotes) != 1 {
		t.Errorf("service saw %v, want one connection", remotes)
	}
}

// Bytes that wait under TLS are tickets on a fresh connection, and a reason not to
// trust one that was used before.
func TestTLSWaitingBytes(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL)
	for name, reused := range map[string]bool{"fresh": false, "used before": true} {
		conn := dialTrusting(t, client, server)
		waitForState(t, conn, socketHasData)
		conn.used = reused
		if conn.stale() != reused {
			t.Errorf("%s: stale is %v", name, !reused)
		}
		_ = conn.Close()
	}
}

// dialTrusting connects and accepts the test server's certificate. With a session
// cache the client asks for tickets.
func dialTrusting(t *testing.T, client *Client, server *httptest.Server) *conn {
	t.Helper()
	socket, err := client.target.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over := tls.Client(socket, &tls.Config{
		RootCAs:            server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		ServerName:         "example.com",
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	})
	if err := over.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return newConn(over, socket)
}
