package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestPermitIsTheLastWord refuses a request on a fresh connection, on a kept one, and with and without a body: not a byte arrives, and the
// connection serves the next request.
func TestPermitIsTheLastWord(t *testing.T) {
	seen := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen++
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	c, err := New(Config{URL: server.URL, Timeout: 5 * time.Second, Concurrency: 1, OnUnknown: UnknownRetry}, "q")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	errNo := errors.New("no")
	for _, body := range []string{"body", ""} {
		refused := c.Post(context.Background(), &Request{Body: []byte(body), Permit: func() error { return errNo }})
		if refused.Outcome != Unreachable || !errors.Is(refused.Err, errNo) {
			t.Errorf("body %q: %v, %v", body, refused.Outcome, refused.Err)
		}
		asked := 0
		sent := c.Post(context.Background(), &Request{Body: []byte(body), Permit: func() error { asked++; return nil }})
		if sent.Outcome != Done || asked != 1 {
			t.Errorf("body %q: %v, %v, asked %d times", body, sent.Outcome, sent.Err, asked)
		}
	}
	if seen != 2 {
		t.Errorf("the service saw %d requests, want 2", seen)
	}
}
