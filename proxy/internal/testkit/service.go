package testkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Action is what the service does with a POST that it has read. The fields act in this order; the zero value answers
// 200 at once.
type Action struct {
	Wait  <-chan struct{} // work until this is closed, whether or not the caller is still there
	Delay time.Duration   // work that long, whether or not the caller is still there
	Works bool            // then the work is done: see Entry.Worked
	Hang  bool            // then wait until the caller is gone, and answer nothing

	Close bool   // then close the connection without an answer (FIN)
	Reset bool   // then reset the connection without an answer (RST)
	Raw   []byte // then write exactly these bytes and close the connection: a broken response

	Status int // then answer; 0 is 200
	Header http.Header
	Body   []byte
}

// Behaviour decides what to do with a POST. It is called by many goroutines at once.
type Behaviour func(Received) Action

// Service is an HTTP service on loopback that works as told and writes down every POST. Any other method is answered
// 200 at once, or as Other says. It keeps its address over Stop and Start, and its journal for ever.
type Service struct {
	URL     string // http://127.0.0.1:PORT
	Addr    string
	Journal *Journal

	port port

	mu         sync.Mutex
	behaviour  Behaviour
	other      http.HandlerFunc
	keepBodies bool
	server     *http.Server   // nil while stopped, and from the beginning of Stop
	stopped    chan struct{}  // closed by Stop: no handler waits any longer
	served     chan struct{}  // closed when the server's goroutine has ended
	handlers   sync.WaitGroup // of this server and earlier ones
}

// StartService returns a service that listens. A nil behaviour answers 200.
func StartService(behaviour Behaviour) (*Service, error) {
	reserved, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("start service: %w", err)
	}
	s := &Service{
		URL: "http://" + reserved.address(), Addr: reserved.address(), Journal: newJournal(), port: reserved,
	}
	s.Behave(behaviour)
	s.Other(nil)
	if err := s.Start(); err != nil {
		reserved.release()
		return nil, err
	}
	return s, nil
}

// Behave changes what is done with the POSTs to come. Nil answers 200.
func (s *Service) Behave(behaviour Behaviour) {
	if behaviour == nil {
		behaviour = func(Received) Action { return Action{} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour = behaviour
}

// Other changes how requests that are no POST are answered (health, lookup). Nil answers 200.
func (s *Service) Other(handler http.HandlerFunc) {
	if handler == nil {
		handler = func(http.ResponseWriter, *http.Request) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other = handler
}

// KeepBodies puts whole bodies into the journal from now on.
func (s *Service) KeepBodies() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepBodies = true
}

// Start listens again after Stop.
func (s *Service) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return errors.New("start service: it is running")
	}
	listener, err := listen(s.Addr)
	if err != nil {
		return fmt.Errorf("start service: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	s.server, s.stopped, s.served = server, make(chan struct{}), served
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return nil
}

// Stop is a crash: the listener and all connections close at once, requests at work end without an answer, and new
// connections are refused. It returns when no handler runs any more.
func (s *Service) Stop() {
	s.mu.Lock()
	server, stopped, served := s.server, s.stopped, s.served
	s.server = nil
	s.mu.Unlock()
	if server == nil {
		return
	}
	close(stopped)
	_ = server.Close()
	<-served
	s.handlers.Wait()
}

// Shutdown is an orderly end: no new requests, those at work are answered.
func (s *Service) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Shutdown(ctx)
	s.Stop()
	return err
}

// Close is Stop for good.
func (s *Service) Close() error {
	s.Stop()
	s.port.release()
	return nil
}

// Handler is the service for a server of the test's own, on a Unix socket or with TLS. It answers while the service runs.
func (s *Service) Handler() http.Handler { return http.HandlerFunc(s.handle) }

func (s *Service) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.server == nil {
		s.mu.Unlock()
		panic(http.ErrAbortHandler) // read in the moment of the crash: nothing was done
	}
	s.handlers.Add(1) // under mu, so before Stop waits
	defer s.handlers.Done()
	behaviour, other, keep, stopped := s.behaviour, s.other, s.keepBodies, s.stopped
	s.mu.Unlock()
	if r.Method != http.MethodPost {
		other(w, r)
		return
	}
	received := read(r, keep)
	place, number := s.Journal.begin(received)
	received.Number = number
	action := behaviour(received)
	if !work(action, stopped) {
		s.Journal.end(place, 0, time.Now())
		panic(http.ErrAbortHandler) // to return would be to answer 200
	}
	if action.Works {
		s.Journal.worked(place)
	}
	if action.Hang {
		select {
		case <-r.Context().Done():
		case <-stopped:
		}
		s.Journal.end(place, 0, time.Now())
		panic(http.ErrAbortHandler)
	}
	ended := time.Now() // before the answer leaves: the next attempt may come before this one is in the journal
	s.Journal.end(place, answer(action, w), ended)
}

func read(r *http.Request, keep bool) Received {
	body, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	received := Received{
		Key:        r.Header.Get("Idempotency-Key"),
		Attempt:    r.Header.Get("Delivery-Attempt"),
		Unknown:    r.Header.Get("Delivery-Outcome-Unknown") == "true",
		Queue:      r.Header.Get("RabbitMQ-Queue"),
		Path:       r.URL.Path,
		URI:        r.RequestURI,
		Header:     r.Header.Clone(),
		BodyLength: len(body),
		BodySHA256: hex.EncodeToString(sum[:]),
		ReadError:  err,
	}
	if keep {
		received.Body = body
	}
	return received
}

// work spends the action's time; false means that the service was stopped meanwhile.
func work(a Action, stopped <-chan struct{}) bool {
	if a.Wait != nil {
		select {
		case <-a.Wait:
		case <-stopped:
			return false
		}
	}
	timer := time.NewTimer(a.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stopped:
		return false
	}
}

// answer returns the status answered, 0 for none. The answer has left, whole, when it returns: a service that is stopped then has
// answered.
func answer(a Action, w http.ResponseWriter) int {
	if a.Close || a.Reset || a.Raw != nil {
		breakOff(a, w)
		return 0
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if _, framed := w.Header()["Transfer-Encoding"]; !framed && status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(a.Body)
	_ = http.NewResponseController(w).Flush() // an error is that the caller is gone
	return status
}

// breakOff ends the connection in the way that the action says.
func breakOff(a Action, w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return // the connection is gone already
	}
	defer connection.Close()
	_, _ = connection.Write(a.Raw)
	if tcp, ok := connection.(*net.TCPConn); ok && a.Reset {
		_ = tcp.SetLinger(0)
	}
}
