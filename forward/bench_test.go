package forward

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// answering is the plainest service there is: it reads headers and body, and says 200.
func answering(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // nothing to lose
				in := bufio.NewReader(c)
				for {
					length := 0
					for {
						line, err := in.ReadSlice('\n')
						if err != nil {
							return
						}
						if len(line) <= 2 {
							break
						}
						_, _ = fmt.Sscanf(string(line), "Content-Length: %d", &length)
					}
					if _, err := in.Discard(length); err != nil {
						return
					}
					if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/"
}

func benchClient(tb testing.TB) *Client {
	client, err := New(Config{URL: answering(tb), Timeout: time.Minute, Concurrency: 1, OnUnknown: UnknownRetry}, "orders")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

func benchRequest(size int) *Request {
	return &Request{
		IdempotencyKey: "f3f2a2a0-1a44-4b3c-9d2e-000000000001", Attempt: 1, RoutingKey: "orders", MessageID: "f3f2a2a0-1a44-4b3c-9d2e-000000000001",
		ContentType: "application/json", Body: make([]byte, size), Permit: func() error { return nil },
	}
}

// BenchmarkPost is one request after another; the service's part is in it.
func BenchmarkPost(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			client, request := benchClient(b), benchRequest(size)
			b.ReportAllocs()
			for b.Loop() {
				if result := client.Post(b.Context(), request); result.Outcome != Done {
					b.Fatal(result.Err)
				}
			}
		})
	}
}

// BenchmarkHead is the writing of a request line and headers.
func BenchmarkHead(b *testing.B) {
	client, request := benchClient(b), benchRequest(0)
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer, _ = client.appendHead(buffer[:0], "/", request, time.Time{})
	}
}

// What a request costs in allocations is mostly the standard library's reading of the answer.
func TestPostAllocations(t *testing.T) {
	client, request := benchClient(t), benchRequest(1<<10)
	client.dial = func(context.Context) (*conn, error) {
		c := &echoConn{}
		return newConn(c, c), nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := testing.AllocsPerRun(1000, func() {
		if result := client.Post(ctx, request); result.Outcome != Done {
			t.Fatal(result.Err)
		}
	})
	const most = 14 // 10, and what the race detector adds
	if got > most {
		t.Errorf("%v allocations a request, at most %d are allowed", got, most)
	}
}

// echoConn answers each write at once.
type echoConn struct{ net.Conn }

func (c *echoConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *echoConn) SetDeadline(time.Time) error { return nil }
func (c *echoConn) Close() error                { return nil }
func (c *echoConn) Read(p []byte) (int, error) {
	return copy(p, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), nil
}
