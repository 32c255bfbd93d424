package forward

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
)

// A connection that was used before and breaks under a request with an
// Idempotency-Key is where HTTP clients repeat requests.
func TestReusedConnectionBreaksAfterRequest(t *testing.T) {
	endings := map[string]func(*rawConn){
		"end":                func(*rawConn) {},
		"reset":              func(c *rawConn) { c.reset() },
		"half a status line": func(c *rawConn) { c.send("HTTP/1.1 20") },
	}
	bodies := map[string]string{"empty": "", "small": "hello", "large": strings.Repeat("x", 1<<20)}
	for ending, finish := range endings {
		for size, body := range bodies {
			t.Run(ending+"/"+size, func(t *testing.T) {
				server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
					c.request()
					c.send(answerOK)
					c.request()
					finish(c)
				})
				client := newTestClient(t, server.url())
				checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "1"}), Done)
				result := client.Post(t.Context(), &Request{IdempotencyKey: "2", Body: []byte(body)})
				checkOutcome(t, result, Unknown)
				if result.Err == nil {
					t.Error("no error says what happened")
				}
				connections, requests := server.seen()
				if connections != 1 || requests != 2 {
					t.Errorf("service saw %d connections and %d requests, want 1 and 2", connections, requests)
				}
			})
		}
	}
}

// The connection is closed between the requests: nothing is sent on it, and the
// request goes out once on a new one.
func TestServiceClosesIdleConnection(t *testing.T) {
	for name, reset := range map[string]bool{"end": false, "reset": true} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{}, 100)
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
				if c.request() {
					c.send(answerOK)
				}
				if reset {
					c.reset()
				}
				_ = c.Close()
				closed <- struct{}{}
			})
			client := newTestClient(t, server.url())
			const posts = 50
			for i := range posts {
				result := client.Post(t.Context(), &Request{IdempotencyKey: fmt.Sprint(i)})
				checkOutcome(t, result, Done)
				<-closed
			}
			if connections, requests := server.seen(); connections != posts || requests != posts {
				t.Errorf("service saw %d connections and %d requests, want %d of each", connections, requests, posts)
			}
		})
	}
}

// failingConn takes no byte after the first request, while its reading side stays
// open: nobody has noticed yet that the service is gone.
type failingConn struct {
	net.Conn
	writes int
}

func (c *failingConn) Write(p []byte) (int, error) {
	if c.writes++; c.writes > 1 {
		return 0, errBroken
	}
	return c.Conn.Write(p)
}

// A kept connection that takes nothing is replaced once; a fresh one is not, nor
// is one that was never opened.
func TestPostDialsAgainOnce(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		for c.request() {
			c.send(answerOK)
		}
	})
	cases := map[string]struct {
		posts     []Outcome
		failAfter int // dials that work
		dials     int
	}{
		"kept connection, then a fresh one":  {[]Outcome{Done, Done}, 2, 2},
		"kept connection, then none":         {[]Outcome{Done, Unreachable}, 1, 2},
		"none at all":                        {[]Outcome{Unreachable}, 0, 1},
		"kept connection, then fresh, twice": {[]Outcome{Done, Done, Done}, 3, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, server.url())
			dials := 0
			client.dial = func(ctx context.Context) (*conn, error) {
				if dials++; dials > c.failAfter {
					return nil, errBroken
				}
				socket, err := client.target.dial(ctx)
				failing := &failingConn{Conn: socket}
				return newConn(failing, failing), err
			}
			client.pool.most = 1
			for _, want := range c.posts {
				checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k", Body: []byte("x")}), want)
			}
			if dials != c.dials {
				t.Errorf("dialed %d times, want %d", dials, c.dials)
			}
		})
	}
	t.Run("fresh connection", func(t *testing.T) {
		client := newTestClient(t, server.url())
		dials := 0
		client.dial = func(ctx context.Context) (*conn, error) {
			dials++
			socket, err := client.target.dial(ctx)
			failing := &failingConn{Conn: socket, writes: 1}
			return newConn(failing, failing), err
		}
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k"}), Unreachable)
		if dials != 1 {
			t.Errorf("dialed %d times, want once", dials)
		}
	})
}

// The service closes at the very moment of the next request. Whatever wins, the
// outcome has to agree with what the service saw.
func TestCloseRace(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		if c.request() {
			c.send(answerOK)
		}
		if c.number%2 == 0 {
			c.reset()
		}
	})
	client := newTestClient(t, server.url())
	outcomes := map[string]Outcome{}
	for i := range 500 {
		key := fmt.Sprint(i)
		outcomes[key] = client.Post(t.Context(), &Request{IdempotencyKey: key, Body: []byte("x")}).Outcome
	}
	client.Close()
	server.close()
	seen := server.keys()
	for key, outcome := range outcomes {
		switch n := seen[key]; {
		case n > 1:
			t.Errorf("request %s was sent %d times", key, n)
		case outcome == Done && n != 1, outcome == Unreachable && n != 0:
			t.Errorf("request %s ended %s, but the service saw it %d times", key, outcome, n)
		case outcome != Done && outcome != Unreachable && outcome != Unknown:
			t.Errorf("request %s ended %s", key, outcome)
		}
	}
}

func TestEmptyBodyOnTheWire(t *testing.T) {
	lines := make(chan string, 1)
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		var head strings.Builder
		for {
			line, err := c.reader.ReadString('\n')
			head.WriteString(line)
			if err != nil || line == "\r\n" {
				break
			}
		}
		lines <- head.String()
		c.send(answerOK)
	})
	client := newTestClient(t, server.url())
	checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k"}), Done)
	head := strings.ToLower(<-lines)
	if strings.Count(head, "content-length: 0\r\n") != 1 || strings.Contains(head, "transfer-encoding") {
		t.Errorf("want exactly one content-length: 0 and no transfer-encoding in\n%s", head)
	}
}

// writeCounter counts the writes that reach the socket.
type writeCounter struct {
	net.Conn
	writes int
}

func (w *writeCounter) Write(p []byte) (int, error) {
	w.writes++
	return w.Conn.Write(p)
}

func TestSmallRequestIsOneWrite(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		c.request()
		c.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	for _, size := range []int{0, 5, 8 << 10} {
		client := newTestClient(t, server.url())
		conn, err := client.target.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counter := &writeCounter{Conn: conn}
		client.dial = dialReturning(newConn(counter, counter))
		checkOutcome(t, client.Post(t.Context(), &Request{Body: make([]byte, size)}), Done)
		if counter.writes != 1 {
			t.Errorf("request with %d bytes of body took %d writes, want 1", size, counter.writes)
		}
	}
}
