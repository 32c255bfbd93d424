package forward

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// rawServer is a service that does with each connection what a test tells it to,
// below the level at which an HTTP server would behave.
type rawServer struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu          sync.Mutex
	open        map[net.Conn]bool
	connections int
	requests    []*http.Request // whole requests; their bodies are in bodies
	bodies      [][]byte
}

// rawConn is one connection of a rawServer.
type rawConn struct {
	net.Conn
	server *rawServer
	reader *bufio.Reader
	number int // of the connection, from 1
}

// newRawServer serves until the test ends; handle is called for each connection,
// which is closed when it returns.
func newRawServer(t *testing.T, network, address string, handle func(*rawConn)) *rawServer {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{listener: listener, open: map[net.Conn]bool{}}
	s.wait.Go(func() { s.serve(handle) })
	t.Cleanup(s.close)
	return s
}

func (s *rawServer) serve(handle func(*rawConn)) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.connections++
		s.open[conn] = true
		raw := &rawConn{Conn: conn, server: s, reader: bufio.NewReader(conn), number: s.connections}
		s.mu.Unlock()
		s.wait.Go(func() {
			defer func() { _ = conn.Close() }()
			handle(raw)
		})
	}
}

func (s *rawServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

func (s *rawServer) url() string { return "http://" + s.listener.Addr().String() + "/hook" }

func (s *rawServer) seen() (connections, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections, len(s.requests)
}

func (s *rawServer) keys() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]int{}
	for _, r := range s.requests {
		keys[r.Header.Get("Idempotency-Key")]++
	}
	return keys
}

// request reads one whole request and records it; false when there is none.
func (c *rawConn) request() bool {
	request, err := http.ReadRequest(c.reader)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return false
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.requests = append(c.server.requests, request)
	c.server.bodies = append(c.server.bodies, body)
	return true
}

func (c *rawConn) send(text string) { _, _ = io.WriteString(c.Conn, text) }

// untilClosed waits until the client has closed.
func (c *rawConn) untilClosed() { _, _ = io.Copy(io.Discard, c.reader) }

// reset makes the coming close a reset (RST) instead of an end (FIN).
func (c *rawConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

const answerOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// newTestClient returns a client with a short timeout, closed when the test ends.
func newTestClient(t *testing.T, url string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url, Timeout: 20 * time.Second, Concurrency: 4, OnUnknown: UnknownRetry, UnknownMax: 3}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg, "orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func checkOutcome(t *testing.T, got Result, want Outcome) {
	t.Helper()
	if got.Outcome != want {
		t.Errorf("outcome = %s (status %d, error %v), want %s", got.Outcome, got.Status, got.Err, want)
	}
	if noAnswer := want == Unreachable; noAnswer && got.Err == nil {
		t.Errorf("outcome %s without error", got.Outcome)
	}
}
