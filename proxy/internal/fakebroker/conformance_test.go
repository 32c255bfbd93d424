package fakebroker

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"rabbitonce/proxy/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a broker under test.
type server struct {
	url         string
	alarm       func(t *testing.T, on bool)
	stop, start func(t *testing.T)
	kill        func(t *testing.T)
	settling    time.Duration // how long a new queue takes to be safe
}

// rule is one thing that the program or its tests rely on.
type rule struct {
	name  string
	kinds []string // of queues; nil: both
	holds func(s *stand)
}

// TestTheFakeObeys runs the rules on the fake.
func TestTheFakeObeys(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); b.ServeListener(l) }()
	defer func() { _ = l.Close(); <-served }()
	conform(t, server{
		url:   fmt.Sprintf("amqp://guest:guest@%s/", l.Addr()),
		alarm: func(_ *testing.T, on bool) { b.SetAlarm(on) },
		stop:  func(*testing.T) { b.Stop() },
		kill:  func(*testing.T) { b.Kill(Damage{}) },
		start: func(*testing.T) { b.Start() },
	})
}

// TestTheRealOneObeys runs the same rules on RabbitMQ: what the fake is held to is so.
func TestTheRealOneObeys(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a broker, which make test does and the quick make check does not")
	}
	b, err := testkit.StartBroker(t.Context(), testkit.BrokerOptions{Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conform(t, server{
		url:      b.URL,
		settling: 2 * time.Second,
		alarm: func(t *testing.T, on bool) {
			mark := "0.6"
			if on {
				mark = "0.00000001"
			}
			_, err := b.Ctl(context.Background(), "set_vm_memory_high_watermark", mark)
			must(t, err)
		},
		stop:  func(t *testing.T) { must(t, b.Stop(t.Context())) },
		kill:  func(t *testing.T) { must(t, b.Kill()) },
		start: func(t *testing.T) { must(t, b.Start(t.Context())) },
	})
}

func conform(t *testing.T, srv server) {
	for _, group := range [][]rule{connectionRules, queueRules, consumerRules, publishRules, deadLetterRules, outageRules} {
		for _, r := range group {
			kinds := r.kinds
			if kinds == nil {
				kinds = []string{classic, quorum}
			}
			for _, kind := range kinds {
				t.Run(r.name+"/"+kind, func(t *testing.T) {
					s := &stand{T: t, server: srv, kind: kind, queue: fmt.Sprintf("rule-%d", time.Now().UnixNano())}
					s.conn = s.dial()
					defer func() { _ = s.conn.Close() }()
					r.holds(s)
				})
			}
		}
	}
}

// stand is where one rule is tried.
type stand struct {
	*testing.T
	server
	kind  string
	queue string // a name that is free
	conn  *amqp.Connection
}

// patience bounds every wait.
const patience = 20 * time.Second

func (s *stand) dial() *amqp.Connection {
	s.Helper()
	conn, err := amqp.Dial(s.url)
	if err != nil {
		s.Fatal(err)
	}
	return conn
}

func (s *stand) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stand) channel() *amqp.Channel {
	s.Helper()
	ch, err := s.conn.Channel()
	s.check(err)
	return ch
}

// declare makes a durable queue of the rule's kind.
func (s *stand) declare(queue string, arguments amqp.Table) {
	s.Helper()
	all := amqp.Table{"x-queue-type": s.kind}
	for name, value := range arguments {
		all[name] = value
	}
	_, err := s.channel().QueueDeclare(queue, true, false, false, false, all)
	s.check(err)
}

// publish sends messages with these bodies, and waits for the confirms.
func (s *stand) publish(queue string, bodies ...string) {
	s.Helper()
	for _, body := range bodies {
		if !s.publishOne(queue, amqp.Publishing{DeliveryMode: 2, Body: []byte(body)}) {
			s.Fatalf("%s was refused", body)
		}
	}
}

func (s *stand) publishOne(queue string, p amqp.Publishing) (acked bool) {
	s.Helper()
	ch := s.channel()
	defer func() { _ = ch.Close() }()
	s.check(ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, p)
	s.check(err)
	return s.confirmed(confirm)
}

func (s *stand) confirmed(confirm *amqp.DeferredConfirmation) bool {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	acked, err := confirm.WaitContext(ctx)
	s.check(err)
	return acked
}

// consume begins to consume on a channel of its own.
func (s *stand) consume(queue string, prefetch int) (*amqp.Channel, <-chan amqp.Delivery) {
	s.Helper()
	ch := s.channel()
	s.check(ch.Qos(prefetch, 0, false))
	deliveries, err := ch.Consume(queue, "c", false, false, false, false, nil)
	s.check(err)
	return ch, deliveries
}

// next is the next delivery, with this body.
func (s *stand) next(deliveries <-chan amqp.Delivery, body string) amqp.Delivery {
	s.Helper()
	select {
	case d, ok := <-deliveries:
		if !ok || string(d.Body) != body {
			s.Fatalf("got %q (%t), want %q", d.Body, ok, body)
		}
		return d
	case <-time.After(patience):
		s.Fatalf("nothing came, want %q", body)
	}
	panic("unreachable")
}

// take takes the head of a queue, which must have this body, and keeps it unsettled.
func (s *stand) take(ch *amqp.Channel, queue, body string) amqp.Delivery {
	s.Helper()
	deadline := time.Now().Add(patience)
	for {
		d, ok, err := ch.Get(queue, false)
		s.check(err)
		switch {
		case ok && string(d.Body) == body:
			return d
		case ok:
			s.Fatalf("got %q, want %q", d.Body, body)
		case time.Now().After(deadline):
			s.Fatalf("the queue stays empty, want %q", body)
		}
		time.Sleep(10 * time.Millisecond) // a dead letter or a return of a quorum queue takes a moment
	}
}

func (s *stand) empty(queue string) {
	s.Helper()
	d, ok, err := s.channel().Get(queue, false)
	s.check(err)
	if ok {
		s.Fatalf("there is still %q", d.Body)
	}
}

// ends waits for the end of a channel or connection with this code and these words.
func (s *stand) ends(closed <-chan *amqp.Error, code int, words string) {
	s.Helper()
	select {
	case err := <-closed:
		if err == nil || err.Code != code || err.Reason != words {
			s.Fatalf("ended with %v, want %d %q", err, code, words)
		}
	case <-time.After(patience):
		s.Fatalf("does not end, want %d %q", code, words)
	}
}

// refuses wants an error with this code and these words.
func (s *stand) refuses(err error, code int, words string) {
	s.Helper()
	e, ok := err.(*amqp.Error) //nolint:errorlint // the library's own
	if !ok || e.Code != code || e.Reason != words {
		s.Fatalf("got %v, want %d %q", err, code, words)
	}
}
