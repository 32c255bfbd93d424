package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func dialReturning(k *conn) func(context.Context) (*conn, error) {
	return func(context.Context) (*conn, error) { return k, nil }
}

func waitForState(t *testing.T, k *conn, want socketState) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); peek(k.raw) != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the socket never showed it")
		}
	}
}

// brokenConn fails each write after taking some bytes.
type brokenConn struct {
	net.Conn
	takes  int
	writes int
	answer io.Reader // what it says all the same
	over   bool      // the time to read
}

var errBroken = errors.New("broken pipe")

func (c *brokenConn) Write([]byte) (int, error)          { c.writes++; return c.takes, errBroken }
func (c *brokenConn) SetDeadline(time.Time) error        { c.over = false; return nil }
func (c *brokenConn) SetReadDeadline(at time.Time) error { c.over = time.Until(at) < 0; return nil }
func (c *brokenConn) SetWriteDeadline(time.Time) error   { return nil }
func (c *brokenConn) Close() error                       { return nil }

func (c *brokenConn) Read(p []byte) (int, error) {
	if c.over {
		return 0, os.ErrDeadlineExceeded
	}
	return c.answer.Read(p)
}

// A request of which the operating system took nothing was not sent. Of one that began to leave nothing more is known than what
// the service says.
func TestFailedWrite(t *testing.T) {
	cases := map[string]struct {
		takes  int
		secure bool
		answer string
		want   Outcome
	}{
		"nothing taken":               {want: Unreachable},
		"nothing taken, but answered": {answer: answerOK, want: Unreachable},
		"some taken":                  {takes: 3, want: Unknown},
		"some taken, and answered":    {takes: 3, answer: "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", want: Reject},
		"TLS may have sent bytes":     {secure: true, want: Unknown},
	}
	for name, c := range cases {
		for size, body := range map[string]string{"small": "x", "large": strings.Repeat("x", 1<<20)} {
			t.Run(name+"/"+size, func(t *testing.T) {
				client := newTestClient(t, "http://127.0.0.1:1/")
				broken := &brokenConn{takes: c.takes, answer: strings.NewReader(c.answer)}
				k := newConn(broken, broken)
				k.secure = c.secure
				client.dial = dialReturning(k)
				result := client.Post(t.Context(), &Request{Body: []byte(body)})
				checkOutcome(t, result, c.want)
				if broken.writes != 1 {
					t.Errorf("%d writes, want 1", broken.writes)
				}
				if len(client.pool.idle) > 0 {
					t.Error("the connection was kept")
				}
			})
		}
	}
}

// A connection that the service closed, or on which it said something unasked, takes no request.
func TestStaleConnection(t *testing.T) {
	for name, spoil := range map[string]func(net.Conn) socketState{
		"closed": func(far net.Conn) socketState { _ = far.Close(); return socketClosed },
		"unasked": func(far net.Conn) socketState {
			_, _ = io.WriteString(far, "HTTP/1.1 408 Request Timeout\r\n\r\n")
			return socketHasData
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close() //nolint:errcheck // nothing to lose
			near, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			far, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = far.Close() })
			k := newConn(near, near)
			waitForState(t, k, spoil(far))
			client := newTestClient(t, "http://127.0.0.1:1/")
			client.dial = dialReturning(k)
			result := client.Post(t.Context(), &Request{Permit: func() error { t.Error("asked for a permit"); return nil }})
			checkOutcome(t, result, Unreachable)
			if !errors.Is(result.Err, errStale) {
				t.Errorf("error %v", result.Err)
			}
		})
	}
}
