package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// serviceBuffer is what a connection reads at once.
const serviceBuffer = 64 << 10

// service is an HTTP/1.1 server that counts POSTs by their Idempotency-Key and answers 200 with nothing. It reads what
// HTTP clients in Go send: bodies with a Content-Length, connections that stay open. Anything else ends the connection,
// and a run with it.
type service struct {
	url    string
	takes  time.Duration // how long it works on a POST
	ledger *ledger

	held      atomic.Int64 // nanoseconds, of all POSTs together
	overslept atomic.Int64 // nanoseconds by which sleeps are made shorter, so that POSTs take that long on average

	listener net.Listener
	running  sync.WaitGroup // the listener's goroutine and those of connections

	mu          sync.Mutex
	connections map[net.Conn]bool // open ones; nil once it is closed
}

// startService listens on a free port of loopback.
func startService(book *ledger, takes time.Duration) (*service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start service: %w", err)
	}
	s := &service{
		url: "http://" + listener.Addr().String() + "/", takes: takes, ledger: book, listener: listener, connections: map[net.Conn]bool{},
	}
	s.running.Go(s.accept)
	return s, nil
}

func (s *service) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.keep(connection) {
			return
		}
		s.running.Go(func() {
			defer s.drop(connection)
			s.serve(connection)
		})
	}
}

// keep notes a connection, for close; false, and it is closed, when that has begun.
func (s *service) keep(connection net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections == nil {
		_ = connection.Close()
		return false
	}
	s.connections[connection] = true
	return true
}

func (s *service) drop(connection net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, connection)
	_ = connection.Close()
}

// close ends all connections and waits for their goroutines.
func (s *service) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for connection := range s.connections {
		_ = connection.Close()
	}
	s.connections = nil
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// serve answers the requests of a connection until it ends.
func (s *service) serve(connection net.Conn) {
	requests := bufio.NewReaderSize(connection, serviceBuffer)
	var answer []byte
	var second int64 // of the answer's Date
	for {
		r, err := readRequest(requests)
		if err != nil {
			return
		}
		now := time.Now()
		if r.post {
			s.ledger.note(r.key[:r.keyLength], now)
			if s.takes > 0 {
				s.work(now)
			}
		}
		if now.Unix() != second {
			second = now.Unix()
			answer = fmt.Appendf(answer[:0], "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Length: 0\r\n\r\n", now.UTC().Format(http.TimeFormat))
		}
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
}

// oversleepShare is by what part of an error the next sleeps are corrected.
const oversleepShare = 64

// work takes the service's time. A process is woken up to a millisecond late, which would count against the program: the
// next sleeps are shorter for it.
func (s *service) work(since time.Time) {
	time.Sleep(s.takes - time.Duration(s.overslept.Load()))
	took := time.Since(since)
	s.held.Add(int64(took))
	s.overslept.Add(int64(took-s.takes) / oversleepShare)
}

// request is what the service wants to know of one.
type request struct {
	post      bool
	key       [64]byte // the Idempotency-Key; a longer one is none of ours, and cut
	keyLength int
}

// readRequest reads a request whole.
func readRequest(from *bufio.Reader) (request, error) {
	var r request
	line, err := from.ReadSlice('\n')
	if err != nil {
		return r, err
	}
	r.post = bytes.HasPrefix(line, []byte("POST "))
	if !bytes.HasSuffix(line, []byte(" HTTP/1.1\r\n")) {
		return r, fmt.Errorf("request line %q: want HTTP/1.1", line)
	}
	length := 0
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return r, err
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			break // the empty line
		}
		value = bytes.TrimSpace(value)
		switch {
		case isHeader(name, "Idempotency-Key"):
			r.keyLength = copy(r.key[:], value)
		case isHeader(name, "Content-Length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return r, fmt.Errorf("content length %q: want a number", value)
			}
		case isHeader(name, "Transfer-Encoding"):
			return r, errors.New("a body without a Content-Length")
		}
	}
	_, err = from.Discard(length)
	return r, err
}

// isHeader compares names; most headers differ in length already.
func isHeader(name []byte, wanted string) bool {
	return len(name) == len(wanted) && bytes.EqualFold(name, []byte(wanted))
}
