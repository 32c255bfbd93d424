package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

func dialReturning(conn net.Conn) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) { return conn, nil }
}

// newGuardedPair returns a guarded connection and its far end, over real TCP.
func newGuardedPair(t *testing.T) (*guardedConn, net.Conn) {
	t.Helper()
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
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return guard(near, near), far
}

// closeAndWait closes the far end and waits until the near socket shows it.
func closeAndWait(t *testing.T, g *guardedConn, far net.Conn) {
	t.Helper()
	_ = far.Close()
	waitForState(t, g, socketClosed)
}

func waitForState(t *testing.T, g *guardedConn, want socketState) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); peek(g.raw) != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the socket never showed it")
		}
	}
}

func TestGuardRefusesUnarmedWrite(t *testing.T) {
	g, _ := newGuardedPair(t)
	if _, err := g.Write([]byte("x")); !errors.Is(err, errOver) {
		t.Errorf("Write = %v, want %v", err, errOver)
	}
}

func TestGuardRefusesClosedConnection(t *testing.T) {
	g, far := newGuardedPair(t)
	closeAndWait(t, g, far)
	var a attempt
	g.arm(&a)
	if _, err := g.Write([]byte("x")); !errors.Is(err, errStale) {
		t.Errorf("Write = %v, want %v", err, errStale)
	}
	if a.end() {
		t.Error("the request counts as begun")
	}
}

func TestGuardRefusesAfterUnaskedBytes(t *testing.T) {
	for name, read := range map[string]bool{"still in the socket": false, "already read": true} {
		t.Run(name, func(t *testing.T) {
			g, far := newGuardedPair(t)
			var a attempt
			g.arm(&a)
			if _, err := io.WriteString(far, "HTTP/1.1 408 Request Timeout\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if read {
				if _, err := io.ReadFull(g, make([]byte, 32)); err != nil {
					t.Fatal(err)
				}
			} else {
				waitForState(t, g, socketHasData)
			}
			if _, err := g.Write([]byte("x")); !errors.Is(err, errStale) {
				t.Errorf("Write = %v, want %v", err, errStale)
			}
			if a.end() {
				t.Error("the request counts as begun")
			}
		})
	}
}

// After end no byte gets out, and what end said stays true.
func TestAttemptIsOver(t *testing.T) {
	g, far := newGuardedPair(t)
	var a attempt
	g.arm(&a)
	if a.end() {
		t.Error("begun before the first byte")
	}
	if _, err := g.Write([]byte("x")); !errors.Is(err, errOver) {
		t.Errorf("Write = %v, want %v", err, errOver)
	}
	_ = g.Close()
	if got, _ := io.ReadAll(far); len(got) > 0 {
		t.Errorf("%q got out", got)
	}
}

func TestAttemptOverWhileWriting(t *testing.T) {
	g, _ := newGuardedPair(t)
	var a attempt
	g.arm(&a)
	if _, err := g.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if !a.end() {
		t.Error("not begun after the first byte")
	}
	if _, err := g.Write([]byte("y")); !errors.Is(err, errOver) {
		t.Errorf("Write = %v, want %v", err, errOver)
	}
}

// Writers and end race; a byte that is out means that end said so.
func TestAttemptEndRace(t *testing.T) {
	for range 200 {
		near, far := net.Pipe()
		g := guard(near, near)
		var a attempt
		g.arm(&a)
		var wait sync.WaitGroup
		got := make(chan int, 1)
		wait.Go(func() {
			data, _ := io.ReadAll(far)
			got <- len(data)
		})
		wait.Go(func() {
			_, _ = g.Write([]byte("x"))
			_ = g.Close()
		})
		began := a.end()
		wait.Wait()
		if n := <-got; n > 0 && !began {
			t.Fatal("a byte got out of a request that had not begun")
		}
	}
}

// brokenConn fails each write after taking some bytes.
type brokenConn struct {
	net.Conn
	takes int
}

var errBroken = errors.New("broken pipe")

func (c *brokenConn) Write([]byte) (int, error)  { return c.takes, errBroken }
func (c *brokenConn) Read(p []byte) (int, error) { return 0, io.EOF }

func TestGuardFailedWrite(t *testing.T) {
	cases := map[string]struct {
		takes     int
		secure    bool
		wantErr   error
		wantBegan bool
	}{
		"nothing taken":           {takes: 0, wantErr: errBroken, wantBegan: false},
		"some taken":              {takes: 3, wantErr: nil, wantBegan: true},
		"TLS may have sent bytes": {takes: 0, secure: true, wantErr: nil, wantBegan: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := &guardedConn{Conn: &brokenConn{takes: c.takes}, secure: c.secure}
			var a attempt
			g.arm(&a)
			if _, err := g.Write([]byte("POST / HTTP/1.1")); !errors.Is(err, c.wantErr) {
				t.Errorf("Write = %v, want %v", err, c.wantErr)
			}
			if began := a.end(); began != c.wantBegan {
				t.Errorf("began = %v, want %v", began, c.wantBegan)
			}
			var next attempt
			g.arm(&next)
			if _, err := g.Write([]byte("POST / HTTP/1.1")); !errors.Is(err, errStale) {
				t.Errorf("next request: Write = %v, want %v", err, errStale)
			}
		})
	}
}
