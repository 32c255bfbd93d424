package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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

// What follows an answer is not taken for the next one, also when it was decrypted along with it: the connection is left, and the
// next request has its own answer.
func TestTLSAnswerToNothing(t *testing.T) {
	certificate := httptest.NewUnstartedServer(http.NotFoundHandler())
	certificate.StartTLS()
	defer certificate.Close()
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, records := range map[string][]string{
		"in one record":    {answerOK + stray},
		"in two records":   {answerOK, stray},
		"in three records": {answerOK, stray, stray},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
				held := &heldConn{Conn: c.Conn}
				over := tls.Server(held, &tls.Config{Certificates: certificate.TLS.Certificates})
				in := bufio.NewReader(over)
				for i := 0; ; i++ {
					request, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if request.Header.Get("Idempotency-Key") == "second" {
						_, _ = io.WriteString(over, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					held.hold() // so that all records arrive at once
					for _, record := range records {
						_, _ = io.WriteString(over, record)
					}
					held.release()
				}
			})
			client := newTestClient(t, server.url())
			client.dial = dialUnverified(client)
			checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "first"}), Done)
			second := client.Post(t.Context(), &Request{IdempotencyKey: "second"})
			if second.Status != http.StatusBadRequest {
				t.Errorf("the second request was answered by %d, %v", second.Status, second.Err)
			}
		})
	}
}

func dialUnverified(client *Client) func(context.Context) (*conn, error) {
	return func(ctx context.Context) (*conn, error) {
		socket, err := client.target.dial(ctx)
		if err != nil {
			return nil, err
		}
		over := tls.Client(socket, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // no secret here
		return newConn(over, socket), over.HandshakeContext(ctx)
	}
}

// heldConn gathers what is written while it is held.
type heldConn struct {
	net.Conn
	holds bool
	held  []byte
}

func (h *heldConn) hold() { h.holds = true }

func (h *heldConn) release() {
	h.holds = false
	_, _ = h.Conn.Write(h.held)
	h.held = nil
}

func (h *heldConn) Write(p []byte) (int, error) {
	if h.holds {
		h.held = append(h.held, p...)
		return len(p), nil
	}
	return h.Conn.Write(p)
}

// A service that takes no more of a large body and says nothing costs the time of the request and no more.
func TestTLSGivesUpInTime(t *testing.T) {
	certificate := httptest.NewUnstartedServer(http.NotFoundHandler())
	certificate.StartTLS()
	defer certificate.Close()
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		over := tls.Server(c.Conn, &tls.Config{Certificates: certificate.TLS.Certificates})
		_ = over.Handshake()
		<-t.Context().Done()
	})
	client := newTestClient(t, server.url())
	client.dial = dialUnverified(client)
	began := time.Now()
	result := client.Post(t.Context(), &Request{Body: make([]byte, 64<<20), Timeout: 300 * time.Millisecond})
	checkOutcome(t, result, Unknown)
	if took := time.Since(began); took > 3*time.Second || !errors.Is(result.Err, ErrTimeout) {
		t.Errorf("%v after %v", result.Err, took)
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
