package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func newService(t *testing.T, messages int, takes time.Duration) (*service, *ledger) {
	t.Helper()
	l := newLedger("00000000-0000-4000-8000-", messages)
	s, err := startService(l, takes)
	must(t, err)
	t.Cleanup(func() { must(t, s.close()) })
	return s, l
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends a body with a key, and wants 200.
func post(t *testing.T, client *http.Client, url, key string, body []byte) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	must(t, err)
	request.Header.Set("Idempotency-Key", key)
	answer, err := client.Do(request)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK || len(text) != 0 {
		t.Errorf("answer %d %q", answer.StatusCode, text)
	}
}

func TestServiceWithTheStandardClient(t *testing.T) {
	const workers, each = 8, 50
	s, l := newService(t, workers*each, 0)
	client := newClient(t)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for n := range each {
				// Bodies are smaller and larger than what is read at once.
				post(t, client, s.url, l.id(w*each+n), bytes.Repeat([]byte("b"), n*n*n))
			}
		})
	}
	running.Wait()
	if l.missing() != 0 || l.extra() != 0 || l.strange.Load() != 0 || l.posts.Load() != workers*each {
		t.Errorf("missing %d, extra %d, strange %d, posts %d", l.missing(), l.extra(), l.strange.Load(), l.posts.Load())
	}
}

func TestServiceCountsWhatGoesWrong(t *testing.T) {
	s, l := newService(t, 3, 0)
	client := newClient(t)
	for _, key := range []string{l.id(0), l.id(1), `"` + l.id(1) + `"`, l.id(3), "", "elsewhere", strings.Repeat("k", 100)} {
		post(t, client, s.url, key, nil)
	}
	answer, err := client.Get(s.url)
	must(t, err)
	must(t, answer.Body.Close())
	if l.missing() != 1 || l.extra() != 1 || l.strange.Load() != 4 {
		t.Errorf("missing %d, extra %d, strange %d", l.missing(), l.extra(), l.strange.Load())
	}
}

func TestServiceTakesItsTime(t *testing.T) {
	const takes = 30 * time.Millisecond
	s, l := newService(t, 1, takes)
	began := time.Now()
	post(t, newClient(t), s.url, l.id(0), nil)
	if took := time.Since(began); took < takes {
		t.Errorf("answered after %v", took)
	}
}

func TestServiceEndsWithConnectionsOpen(t *testing.T) {
	l := newLedger("x", 1)
	s, err := startService(l, 0)
	must(t, err)
	connection, err := net.Dial("tcp", s.listener.Addr().String())
	must(t, err)
	defer connection.Close()
	_, err = fmt.Fprint(connection, "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
	must(t, err)
	must(t, s.close())
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Error("half a request has been answered")
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"chunks":             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"an older protocol":  "POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
		"a length of x":      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
		"a negative length":  "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"half a body":        "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
		"half a header":      "POST / HTTP/1.1\r\nContent-Le",
		"nothing":            "",
		"a line without end": strings.Repeat("x", 2*serviceBuffer),
	} {
		if _, err := readRequest(bufio.NewReaderSize(strings.NewReader(text), serviceBuffer)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestServiceMakesUpForSleepingTooLong(t *testing.T) {
	const takes, posts = time.Millisecond, 50
	s, l := newService(t, posts, takes)
	client := newClient(t)
	for n := range posts {
		post(t, client, s.url, l.id(n), nil)
	}
	if s.overslept.Load() <= 0 {
		t.Error("no sleep was ever too long")
	}
}
