package forward

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPostTimeout(t *testing.T) {
	cases := map[string]func(*rawConn){
		"no answer":      func(c *rawConn) { c.request(); c.untilClosed() },
		"nothing read":   func(c *rawConn) { <-waitForClose(c) },
		"half an answer": func(c *rawConn) { c.request(); c.send("HTTP/1.1 200 OK\r\nCont"); c.untilClosed() },
		"half a body": func(c *rawConn) {
			c.request()
			c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
			c.untilClosed()
		},
		"body never ends": func(c *rawConn) { c.request(); c.send("HTTP/1.1 200 OK\r\n\r\nab"); c.untilClosed() },
	}
	for name, handle := range cases {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", handle)
			client := newTestClient(t, server.url())
			started := time.Now()
			result := client.Post(t.Context(), &Request{Timeout: 100 * time.Millisecond, Body: make([]byte, 8<<20)})
			checkOutcome(t, result, Unknown)
			if !errors.Is(result.Err, ErrTimeout) || !errors.Is(result.Err, context.DeadlineExceeded) {
				t.Errorf("error = %v, want %v", result.Err, ErrTimeout)
			}
			if took := time.Since(started); took < 100*time.Millisecond || took > 10*time.Second {
				t.Errorf("took %s, want 100ms", took)
			}
		})
	}
}

// waitForClose is closed when the server closes the connection; nothing is read.
func waitForClose(c *rawConn) <-chan struct{} {
	closed := make(chan struct{})
	raw, err := c.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		close(closed)
		return closed
	}
	c.server.wait.Go(func() {
		defer close(closed)
		// The runtime wakes the waiter whenever the socket has news; it never takes
		// any of it, and ends with the connection.
		_ = raw.Read(func(uintptr) bool { return peek(raw) == socketClosed })
	})
	return closed
}

func TestPostTimeoutIsBoundedByConfig(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) { c.request(); c.untilClosed() })
	client := newTestClient(t, server.url(), func(c *Config) { c.Timeout = 50 * time.Millisecond })
	for _, timeout := range []time.Duration{0, -1, time.Hour} {
		result := client.Post(t.Context(), &Request{Timeout: timeout})
		checkOutcome(t, result, Unknown)
		if !errors.Is(result.Err, ErrTimeout) {
			t.Errorf("error = %v, want %v", result.Err, ErrTimeout)
		}
	}
}

func TestPostContextEnds(t *testing.T) {
	lost := errors.New("lease lost")
	t.Run("before", func(t *testing.T) {
		server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) { c.request() })
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(lost)
		result := newTestClient(t, server.url()).Post(ctx, &Request{})
		checkOutcome(t, result, Unreachable)
		if !errors.Is(result.Err, lost) || !strings.Contains(result.Err.Error(), "before the request was sent") {
			t.Errorf("error = %v", result.Err)
		}
		if connections, _ := server.seen(); connections != 0 {
			t.Errorf("service saw %d connections, want 0", connections)
		}
	})
	t.Run("after", func(t *testing.T) {
		received := make(chan struct{})
		server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
			c.request()
			close(received)
			c.untilClosed()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-received
			cancel(lost)
		}()
		result := newTestClient(t, server.url()).Post(ctx, &Request{})
		checkOutcome(t, result, Unknown)
		if !errors.Is(result.Err, lost) || !strings.Contains(result.Err.Error(), "after the request began") {
			t.Errorf("error = %v", result.Err)
		}
	})
	t.Run("while the body is sent", func(t *testing.T) {
		received := make(chan struct{})
		server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
			closed := waitForClose(c)
			close(received)
			<-closed
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-received
			cancel(lost)
		}()
		result := newTestClient(t, server.url()).Post(ctx, &Request{Body: make([]byte, 12<<20)})
		if result.Outcome != Unknown && result.Outcome != Unreachable {
			t.Errorf("outcome = %s, want unknown or unreachable", result.Outcome)
		}
		if !errors.Is(result.Err, lost) {
			t.Errorf("error = %v, want %v", result.Err, lost)
		}
	})
}
