package forward

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPostEveryStatus(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		status, _ := strconv.Atoi(r.Header.Get("Idempotency-Key"))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL)
	for status := 200; status <= 599; status++ {
		result := client.Post(t.Context(), &Request{IdempotencyKey: strconv.Itoa(status), Body: []byte("x")})
		want := Result{Outcome: wantOutcome(status), Status: status}
		if diff := cmp.Diff(want, result); diff != "" {
			t.Errorf("status %d (-want +got):\n%s", status, diff)
		}
	}
	if n := requests.Load(); n != 400 {
		t.Errorf("service saw %d requests, want 400: none repeated, no redirect followed", n)
	}
}

// Answers as they come over the wire, good and bad.
func TestPostAnswers(t *testing.T) {
	long := strings.Repeat("a", 70<<10)
	cases := map[string]struct {
		answer  string
		want    Outcome
		status  int
		excerpt string
		wait    time.Duration
	}{
		"whole":                   {answer: answerOK, want: Done, status: 200, excerpt: "ok"},
		"chunked":                 {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: Done, status: 200, excerpt: "ok"},
		"until closed, HTTP/1.0":  {answer: "HTTP/1.0 200 OK\r\n\r\nok", want: Done, status: 200, excerpt: "ok"},
		"no content":              {answer: "HTTP/1.1 204 No Content\r\n\r\n", want: Done, status: 204},
		"not modified":            {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", want: Fail, status: 304},
		"redirect":                {answer: "HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n", want: Fail, status: 302},
		"redirect that keeps":     {answer: "HTTP/1.1 307 Temporary Redirect\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n", want: Fail, status: 307},
		"early hints first":       {answer: "HTTP/1.1 103 Early Hints\r\n\r\n" + answerOK, want: Done, status: 200, excerpt: "ok"},
		"continue first":          {answer: "HTTP/1.1 100 Continue\r\n\r\n" + answerOK, want: Done, status: 200, excerpt: "ok"},
		"only early hints":        {answer: "HTTP/1.1 103 Early Hints\r\n\r\n", want: Unknown},
		"switching protocols":     {answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\nDelivery-Action: done\r\n\r\n", want: Unknown, status: 101},
		"retry after":             {answer: "HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", want: Defer, status: 503, wait: 9 * time.Second},
		"own decision":            {answer: "HTTP/1.1 200 OK\r\nDelivery-Action: reject\r\nContent-Length: 2\r\n\r\nno", want: Reject, status: 200, excerpt: "no"},
		"garbage":                 {answer: "220 mail.example.com ESMTP\r\n", want: Unknown},
		"no status":               {answer: "HTTP/1.1 OK\r\n\r\n", want: Unknown},
		"nothing":                 {answer: "", want: Unknown},
		"headers cut short":       {answer: "HTTP/1.1 200 OK\r\nContent-Le", want: Unknown},
		"body cut short":          {answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok", want: Unknown, status: 200, excerpt: "ok"},
		"chunks cut short":        {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", want: Unknown, status: 200, excerpt: "ok"},
		"broken chunks":           {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\nok\r\n", want: Unknown, status: 200},
		"deferred, cut short":     {answer: "HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 10\r\n\r\n", want: Unknown, status: 503},
		"two lengths":             {answer: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", want: Unknown},
		"headers too long":        {answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + long + "\r\n\r\n", want: Unknown},
		"long":                    {answer: "HTTP/1.1 400 Bad\r\nContent-Length: 71680\r\n\r\n" + long, want: Reject, status: 400, excerpt: long[:1024]},
		"cut short after bound":   {answer: "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + long, want: Done, status: 200, excerpt: long[:1024]},
		"compressed, as it comes": {answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nno", want: Done, status: 200, excerpt: "no"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(conn *rawConn) {
				conn.request()
				conn.send(c.answer)
			})
			result := newTestClient(t, server.url()).Post(t.Context(), &Request{IdempotencyKey: "k", Body: []byte("x")})
			checkOutcome(t, result, c.want)
			if result.Status != c.status || string(result.Excerpt) != c.excerpt || result.RetryAfter != c.wait {
				t.Errorf("status %d, wait %s, excerpt %.20q, want %d, %s, %.20q",
					result.Status, result.RetryAfter, result.Excerpt, c.status, c.wait, c.excerpt)
			}
			if broken := c.want == Unknown; broken != (result.Err != nil) {
				t.Errorf("error = %v", result.Err)
			}
			if _, requests := server.seen(); requests != 1 {
				t.Errorf("service saw %d requests, want 1", requests)
			}
		})
	}
}

// An answer without end counts once the bound is reached, and its connection is
// closed: the service notices.
func TestPostEndlessAnswer(t *testing.T) {
	noticed := make(chan struct{})
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
		defer close(noticed)
		c.request()
		c.send("HTTP/1.1 200 OK\r\n\r\n")
		block := make([]byte, 4096)
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
	result := newTestClient(t, server.url()).Post(t.Context(), &Request{})
	checkOutcome(t, result, Done)
	<-noticed
}

func TestPostBodies(t *testing.T) {
	large := make([]byte, 10<<20)
	_, _ = rand.Read(large)
	bodies := make(chan []byte, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		bodies <- got
		if r.ContentLength != int64(len(got)) {
			t.Errorf("Content-Length %d for %d bytes", r.ContentLength, len(got))
		}
	})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := newTestClient(t, server.URL)
	for name, body := range map[string][]byte{"nil": nil, "empty": {}, "small": []byte("a\x00\xff"), "large": large} {
		checkOutcome(t, client.Post(t.Context(), &Request{IdempotencyKey: "k", Body: body}), Done)
		if got := <-bodies; !bytes.Equal(got, body) {
			t.Errorf("%s: service got %d bytes, want the %d of the message", name, len(got), len(body))
		}
	}
}

// The service refuses a body that it has not read: its answer counts, also when it
// then closes or resets and the rest of the body cannot be written.
func TestPostEarlyAnswer(t *testing.T) {
	const answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
	endings := map[string]func(*rawConn){
		"stays open": func(c *rawConn) { c.untilClosed() },
		"end":        func(*rawConn) {},
		"reset later": func(c *rawConn) {
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			_, _ = io.CopyN(io.Discard, c.reader, 1<<20)
			c.reset()
		},
	}
	for name, finish := range endings {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
				_, _ = http.ReadRequest(c.reader)
				c.send(answer)
				finish(c)
			})
			client := newTestClient(t, server.url())
			for range 5 {
				result := client.Post(t.Context(), &Request{Body: make([]byte, 12<<20)})
				checkOutcome(t, result, Reject)
				if result.Status != 413 || string(result.Excerpt) != "big" {
					t.Errorf("status %d, excerpt %q, want 413, big", result.Status, result.Excerpt)
				}
			}
		})
	}
}

func TestErrorsHideCredentials(t *testing.T) {
	client := newTestClient(t, "http://user:s3cret@127.0.0.1:1/hook?token=s3cret")
	result := client.Post(t.Context(), &Request{})
	checkOutcome(t, result, Unreachable)
	err := client.Probe(t.Context())
	for _, text := range []string{fmt.Sprint(result.Err), fmt.Sprint(err), client.Target()} {
		if strings.Contains(text, "s3cret") || !strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%q has to name the address and no secret", text)
		}
	}
}
