package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What answers look like, whether they are understood, and whether the connection is used again.
func TestAnswers(t *testing.T) {
	const hello = "Content-Length: 5\r\n\r\nhello"
	cases := map[string]struct {
		answer string
		closes bool // the service, behind it
		want   Outcome
		status int
		kept   bool
	}{
		"usual":                       {"HTTP/1.1 200 OK\r\n" + hello, false, Done, 200, true},
		"no reason":                   {"HTTP/1.1 200\r\n" + hello, false, Done, 200, true},
		"line feeds alone":            {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", false, Done, 200, true},
		"no content":                  {"HTTP/1.1 204 No Content\r\n\r\n", false, Done, 204, true},
		"not modified, with a length": {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, Fail, 304, true},
		"chunks":                      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", false, Done, 200, true},
		"chunks and a trailer":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n5\r\nhello\r\n0\r\nT: 1\r\n\r\n", false, Done, 200, true},
		"until the end":               {"HTTP/1.1 200 OK\r\n\r\nhello", true, Done, 200, false},
		"closes":                      {"HTTP/1.1 200 OK\r\nConnection: close\r\n" + hello, false, Done, 200, false},
		"HTTP/1.0":                    {"HTTP/1.0 200 OK\r\n" + hello, false, Done, 200, false},
		"HTTP/1.0 that keeps":         {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + hello, false, Done, 200, true},
		"a second one":                {"HTTP/1.1 200 OK\r\n" + hello + "HTTP/1.1 500 Oh\r\n\r\n", false, Done, 200, false},
		"bytes behind it":             {"HTTP/1.1 200 OK\r\n" + hello + "x", false, Done, 200, false},
		"interim":                     {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", maxInterim) + "HTTP/1.1 200 OK\r\n" + hello, false, Done, 200, true},
		"interim without end":         {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxInterim+1) + "HTTP/1.1 200 OK\r\n" + hello, false, Unknown, 0, false},
		"another protocol":            {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false, Unknown, 101, false},
		"headers up to the bound":     {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxAnswerHeader/2) + "\r\n" + hello, false, Done, 200, true},
		"headers over it":             {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxAnswerHeader) + "\r\n" + hello, false, Unknown, 0, false},
		"a body up to the bound":      {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", maxAnswer-1, strings.Repeat("x", maxAnswer-1)), false, Done, 200, true},
		"a body over it":              {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 2*maxAnswer, strings.Repeat("x", 2*maxAnswer)), false, Done, 200, false},
		"half a body":                 {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", true, Unknown, 200, false},
		"half of the chunks":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true, Unknown, 200, false},
		"a chunk that lies":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nhello\r\n0\r\n\r\n", false, Unknown, 200, false},
		"two lengths":                 {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" + hello, false, Unknown, 0, false},
		"half a status line":          {"HTTP/1.1 2", true, Unknown, 0, false},
		"half of the headers":         {"HTTP/1.1 200 OK\r\nContent-", true, Unknown, 0, false},
		"no HTTP":                     {"220 mail ready\r\n", true, Unknown, 0, false},
		"nothing":                     {"", true, Unknown, 0, false},
	}
	together := []string{"a second one", "bytes behind it"} // byte by byte, what is behind it may come after the next request
	for name, c := range cases {
		for _, piece := range []int{1 << 20, 1000, 1} {
			if piece == 1 && (len(c.answer) > 1000 || slices.Contains(together, name)) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, piece), func(t *testing.T) {
				server := newRawServer(t, "tcp", "127.0.0.1:0", func(r *rawConn) {
					for r.request() {
						for rest := c.answer; rest != ""; {
							n := min(piece, len(rest))
							r.send(rest[:n])
							rest = rest[n:]
						}
						if c.closes {
							return
						}
					}
				})
				client := newTestClient(t, server.url())
				result := client.Post(t.Context(), &Request{Body: []byte("x")})
				checkOutcome(t, result, c.want)
				if result.Status != c.status || (result.Err == nil) != (c.want != Unknown) {
					t.Errorf("status %d, error %v", result.Status, result.Err)
				}
				if kept := len(client.pool.idle) == 1; kept != c.kept {
					t.Errorf("the connection was kept: %v", kept)
				}
				_, _ = server.seen()
				again := client.Post(t.Context(), &Request{Body: []byte("x")})
				checkOutcome(t, again, c.want)
				if connections, requests := server.seen(); connections != map[bool]int{true: 1, false: 2}[c.kept] || requests != 2 {
					t.Errorf("service saw %d connections and %d requests", connections, requests)
				}
			})
		}
	}
}

// A request that is cut off at any moment leaves no trace in the next one, and its outcome agrees with what the service saw.
func TestCutOffAtAnyMoment(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		for c.request() {
			c.send(answerOK)
		}
	})
	client := newTestClient(t, server.url(), func(c *Config) { c.Concurrency = 4 })
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]Outcome{}
	cause := errors.New("lease lost")
	for w := range 4 {
		all.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancelCause(t.Context())
				cut := i%2 == 0
				if cut {
					timer := time.AfterFunc(time.Duration(i)*200*time.Nanosecond, func() { cancel(cause) })
					defer timer.Stop()
				}
				key := fmt.Sprintf("%d-%d", w, i)
				result := client.Post(ctx, &Request{IdempotencyKey: key, Body: make([]byte, (i%3)*smallBody)})
				cancel(nil)
				if result.Outcome != Done && (!cut || !errors.Is(result.Err, cause)) {
					t.Errorf("%s: %v, %v", key, result.Outcome, result.Err)
				}
				mu.Lock()
				outcomes[key] = result.Outcome
				mu.Unlock()
			}
		})
	}
	all.Wait()
	client.Close()
	server.close()
	seen := server.keys()
	for key, outcome := range outcomes {
		if n := seen[key]; n > 1 || (outcome == Done && n != 1) || (outcome == Unreachable && n != 0) {
			t.Errorf("%s ended %v, but the service saw it %d times", key, outcome, n)
		}
	}
}

// No more connections are kept than can be used at once, and none for long.
func TestPoolIsBounded(t *testing.T) {
	p := pool{most: 2}
	open := map[net.Conn]*lifeConn{}
	put := func() *conn {
		c := &lifeConn{}
		k := newConn(c, c)
		open[k] = c
		p.put(k)
		return k
	}
	first, second, third := put(), put(), put()
	if !open[third].closed || open[first].closed || open[second].closed {
		t.Error("the third is to be closed, the others kept")
	}
	if p.take() != second {
		t.Error("not the one that was used last")
	}
	p.put(second)
	p.mu.Lock()
	first.idleSince = time.Now().Add(-2 * idleTimeout)
	p.mu.Unlock()
	for deadline := time.Now().Add(10 * idleTimeout); time.Now().Before(deadline) && len(p.takeAll()) > 0; {
		time.Sleep(20 * time.Millisecond)
	}
	if !open[first].closed || !open[second].closed || p.take() != nil {
		t.Error("connections are kept for too long")
	}
	old := put()
	p.mu.Lock()
	old.idleSince = time.Now().Add(-2 * idleTimeout)
	p.mu.Unlock()
	if p.take() != nil || !open[old].closed {
		t.Error("an old connection was given out")
	}
	fourth := put()
	if p.drop(); !open[fourth].closed || p.take() != nil {
		t.Error("drop leaves a connection")
	}
}

func (p *pool) takeAll() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*conn(nil), p.idle...)
}

// lifeConn is a connection that can be closed, and nothing else.
type lifeConn struct {
	net.Conn
	closed bool
}

func (c *lifeConn) Close() error { c.closed = true; return nil }
