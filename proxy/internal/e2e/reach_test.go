package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// serveOn serves the stand's service at a listener, with TLS when there is a certificate.
func (s *stand) serveOn(listener net.Listener, certificate *tls.Config) {
	server := httptest.NewUnstartedServer(s.service.Handler())
	_ = server.Listener.Close()
	server.Listener, server.TLS = listener, certificate
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	if certificate != nil {
		server.StartTLS()
	} else {
		server.Start()
	}
	s.t.Cleanup(server.Close)
}

// Catches: a socket that is not there yet taken for a mistake, or for an attempt.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	s.must(err)
	t.Cleanup(func() { s.closed(os.RemoveAll(dir)) })
	path := filepath.Join(dir, "app.sock")
	s.publish("a", "b")
	r := s.start(env{"FORWARD_URL": "unix:" + path + ":/in/{queue}"})
	r.waitMissing("service")
	listener, err := net.Listen("unix", path)
	s.must(err)
	s.serveOn(listener, nil)
	s.answered("a", "b")
	s.settled()
	s.once("a", "b")
	if got := s.posts("a", 1)[0].Path; got != "/in/"+s.queue {
		t.Errorf("path %s", got)
	}
}

// Catches: a certificate that is not trusted counted as an attempt, or named without its setting; a CA file that is read at start only.
func TestServiceCertificate(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	dir := t.TempDir()
	theirs, err := testkit.NewAuthority(dir, "theirs")
	s.must(err)
	another, err := testkit.NewAuthority(dir, "another")
	s.must(err)
	issued, err := theirs.Issue(testkit.Holder{Name: "app", Hosts: []string{"localhost"}})
	s.must(err)
	pair, err := tls.LoadX509KeyPair(issued.File, issued.KeyFile)
	s.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.serveOn(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	trusted := filepath.Join(dir, "trusted.pem")
	writeFile(t, trusted, readFile(t, theirs.File))
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	r := s.start(env{"FORWARD_URL": "https://localhost:" + port + "/work", "FORWARD_TLS_CA_FILE": trusted, "RETRY_MAX_ATTEMPTS": "1"})
	s.publish("first")
	s.answered("first")
	writeFile(t, trusted, readFile(t, another.File))
	s.outage(1200 * time.Millisecond) // the connection is kept for less
	s.publish("a", "b")
	r.waitMetric(`rabbitonce_request_seconds_count{outcome="unreachable",queue="{queue}"}`, 1)
	_, err = r.Logs.Wait(s.ctx, func(l testkit.LogLine) bool {
		text, _ := l.Fields["error"].(string)
		return l.Fields["part"] == "service" && strings.Contains(text, "certificate")
	})
	s.must(err)
	writeFile(t, trusted, readFile(t, theirs.File))
	s.answered("a", "b")
	s.settled()
	s.once("first", "a", "b")
	s.noLetters()
}

// rawPeer listens and gives each connection to the test, which closes it by returning.
type rawPeer struct {
	listener net.Listener
	work     sync.WaitGroup
}

func (s *stand) rawPeer(handle func(net.Conn)) *rawPeer {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	p := &rawPeer{listener: listener}
	p.work.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() {
				defer connection.Close()
				handle(connection)
			})
		}
	})
	s.t.Cleanup(func() {
		for _, r := range s.replicas { // with their connections
			s.closed(r.Kill())
		}
		_ = listener.Close()
		p.work.Wait()
	})
	return p
}

func (p *rawPeer) url() string { return "http://" + p.listener.Addr().String() + "/work" }

// Catches: the early refusal of a large body taken for a broken connection, and the message sent again.
func TestRefusedWhileTheBodyIsSent(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	s := newStand(t, nil)
	peer := s.rawPeer(func(connection net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(connection))
		if err != nil {
			return // a health check
		}
		posts.Add(1)
		_, _ = io.CopyN(io.Discard, request.Body, 1000)
		_, _ = io.WriteString(connection, "HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\nConnection: close\r\n\r\nat most!")
		// What comes after that is not read: closing is a reset.
	})
	s.start(env{"FORWARD_URL": peer.url(), "FORWARD_ON_UNKNOWN": "deadletter"})
	large := amqp.Publishing{MessageId: "a", Body: bytes.Repeat([]byte("large "), 1<<20)}
	s.must(s.client.PublishTo(s.ctx, s.queue, large))
	l := s.letters(1)[0]
	if l.Headers["x-rabbitonce-reason"] != "rejected" || l.Headers["x-rabbitonce-status"] != int64(413) || l.Headers["x-rabbitonce-response"] != "at most!" ||
		l.Headers["x-rabbitonce-attempts"] != int64(1) || !bytes.Equal(l.Body, large.Body) {
		t.Errorf("%d bytes with %v", len(l.Body), l.Headers)
	}
	s.settled()
	if n := posts.Load(); n != 1 {
		t.Errorf("%d POSTs", n)
	}
}

// Catches: a service that greets with HTTP/2 before it was asked: it must not hang, and what it says is no answer. Whether a byte of the request has
// left by then is a matter of chance: no attempt, or one whose outcome is unknown.
func TestServiceThatGreets(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	var posts atomic.Int32
	s := newStand(t, nil)
	peer := s.rawPeer(func(connection net.Conn) {
		if !mended.Load() {
			_, _ = connection.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00")) // SETTINGS
		}
		request, err := http.ReadRequest(bufio.NewReader(connection))
		if err != nil {
			return
		}
		posts.Add(1)
		_, _ = io.Copy(io.Discard, request.Body)
		if mended.Load() {
			_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	r := s.start(env{"FORWARD_URL": peer.url(), "FORWARD_ON_UNKNOWN": "deadletter", "RETRY_MAX_ATTEMPTS": "1", "FORWARD_TIMEOUT": "20s"})
	s.publish("a")
	s.eventually("something comes of it", func() (bool, error) {
		samples, err := r.Metrics(s.ctx)
		unreached := samples[`rabbitonce_request_seconds_count{outcome="unreachable",queue="`+s.queue+`"}`]
		letters := samples[`rabbitonce_dead_letters_total{queue="`+s.queue+`",reason="unknown-outcome"}`]
		return unreached >= 2 || letters == 1, err
	})
	mended.Store(true)
	s.settled()
	for _, l := range s.drain(s.dead) {
		s.lettersOf([]amqp.Delivery{l}, "a", "unknown-outcome")
		if l.Headers["x-rabbitonce-attempts"] != int64(1) {
			t.Errorf("headers of the letter: %v", l.Headers)
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d POSTs", n)
	}
}

// drain takes what is in a queue.
func (s *stand) drain(queue string) []amqp.Delivery {
	s.t.Helper()
	all, err := s.client.Drain(queue)
	s.must(err)
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
