package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// This file is the only one that knows the AMQP library. Its own recovery is not used: after a reconnect it re-opens
// the same channel object, whose delivery tags start at 1 again, so that the ack of an old delivery would settle a
// new one. Here every session has a channel of its own that is never re-opened.

type (
	// delivery is a message as the broker handed it over, bound to the channel it came on.
	delivery = amqp.Delivery
	// letter is a message as it is published.
	letter = amqp.Publishing
	// table holds AMQP headers.
	table = amqp.Table
	// connection, channel and returned let publisher.go speak of the library's types.
	connection = amqp.Connection
	channel    = amqp.Channel
	returned   = amqp.Return
	blocking   = amqp.Blocking
	closing    = amqp.Error
	decimal    = amqp.Decimal
)

// Reply codes and words of the protocol that callers tell apart
// (https://www.rabbitmq.com/amqp-0-9-1-reference#constants).
const (
	notFound           = amqp.NotFound
	accessRefused      = amqp.AccessRefused
	preconditionFailed = amqp.PreconditionFailed
)

// syntaxErrorReason is what the library says of a frame that it cannot decode.
func syntaxErrorReason() string { return amqp.ErrSyntax.Reason }

// isNoMechanism tells whether the broker offers no kind of login that we have.
func isNoMechanism(e *closing) bool { return e == amqp.ErrSASL }

// defaultFrameSize is RabbitMQ's (frame_max, https://www.rabbitmq.com/docs/configure).
const defaultFrameSize = 128 << 10

// openConnection does the handshake of AMQP on a connection and logs in. The library clears the connection's deadline
// when it is over, and closes the connection only when the connection was open.
func openConnection(conn net.Conn, vhost string, who login, name, version string) (*connection, error) {
	properties := amqp.Table{"product": "rabbitonce", "version": version, "platform": "Go"}
	properties.SetClientConnectionName(name)
	var auth amqp.Authentication = &amqp.PlainAuth{Username: who.username, Password: who.password}
	if who.external {
		auth = &amqp.ExternalAuth{}
	}
	return amqp.Open(conn, amqp.Config{
		Vhost: vhost, SASL: []amqp.Authentication{wordedAuth{auth, properties}}, Properties: properties,
		Heartbeat: heartbeat, FrameSize: defaultFrameSize, Locale: "en_US",
	})
}

// wordedAuth makes the broker say why it refuses a login instead of closing the connection without a word: it does so
// for clients that announce it (https://www.rabbitmq.com/docs/auth-notification). The library sets the announced
// capabilities itself, just before it asks for the response.
type wordedAuth struct {
	amqp.Authentication
	properties amqp.Table
}

func (a wordedAuth) Response() string {
	if capabilities, ok := a.properties["capabilities"].(amqp.Table); ok {
		capabilities["authentication_failure_close"] = true
	}
	return a.Authentication.Response()
}

// consumer is one channel with one consumer. It is used by one goroutine, its session's.
type consumer struct {
	conn       *amqp.Connection
	queue      string
	prefetch   int
	ch         *amqp.Channel
	tag        string
	deliveries <-chan delivery // closed when the broker or we cancel the consumer, and when the channel or connection ends
	closed     chan *amqp.Error
	cancelled  chan string
}

// consume starts a consumer on a queue. A queue that is missing, or one of a kind that cannot work, is an error that
// says so. The end of ctx ends the connection, whatever the broker is being asked.
func (b *broker) consume(ctx context.Context, queue string, prefetch int) (*consumer, error) {
	conn, err := b.consuming(ctx)
	if err != nil {
		return nil, b.grants.advise(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) })
	defer stop()
	c, err := startConsumer(conn, queue, prefetch, b.declare)
	if err != nil {
		return nil, b.grants.advise(err)
	}
	return c, nil
}

func startConsumer(conn *amqp.Connection, queue string, prefetch int, declare table) (*consumer, error) {
	err := checkQueue(conn, queue, accessRead)
	if declare != nil && whyEnded(err) == endQueueMissing {
		err = declareQueue(conn, destination{queue: queue, arguments: declare})
	}
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", brokerError(err))
	}
	c := &consumer{
		conn: conn, queue: queue, prefetch: prefetch, ch: ch, tag: "rabbitonce",
		closed: ch.NotifyClose(make(chan *amqp.Error, 1)), cancelled: ch.NotifyCancel(make(chan string, 1)),
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		_ = ch.Close()
		return nil, fmt.Errorf("set prefetch of queue %s: %w", queue, brokerError(err))
	}
	c.deliveries, err = ch.Consume(queue, c.tag, false, false, false, false, nil)
	if err != nil {
		_ = ch.Close()
		return nil, fmt.Errorf("consume queue %s: %w", queue, brokerErrorOn(accessRead, err))
	}
	return c, nil
}

// declareQueue makes sure that a queue is there. One that exists is used as it is; a missing one is declared, durable,
// with these arguments; one without arguments is never declared.
// Unless it has to be exact, of course: then the broker compares.
func declareQueue(conn *amqp.Connection, to destination) error {
	if !to.exact {
		err := checkQueue(conn, to.queue, accessConfigure)
		if err == nil || whyEnded(err) != endQueueMissing || to.arguments == nil {
			return err
		}
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", brokerError(err))
	}
	defer func() { _ = ch.Close() }()
	_, err = ch.QueueDeclare(to.queue, true, false, false, false, to.arguments)
	if err != nil {
		return fmt.Errorf("declare queue %s: %w", to.queue, brokerErrorOn(accessToDeclare(to.arguments), err))
	}
	return nil
}

// checkQueue asks for the queue passively on a channel of its own: a failed declare closes the channel it was made on.
// needed is the permission that what comes next takes.
func checkQueue(conn *amqp.Connection, queue string, needed access) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", brokerError(err))
	}
	defer func() { _ = ch.Close() }()
	if _, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil {
		return fmt.Errorf("check queue %s: %w", queue, brokerErrorOn(needed, err))
	}
	return nil
}

// frameSize is how many bytes a frame may have on the connection: what was agreed with the broker.
func frameSize(conn *amqp.Connection) int {
	if n := conn.Config.FrameSize; n > 0 {
		return n
	}
	return defaultFrameSize
}

// arrived returns once the broker has taken in what was sent on the channel so far: it answers in order, and this
// setting, which holds for later consumers only, changes nothing.
func (c *consumer) arrived() error { return c.ch.Qos(c.prefetch, 0, false) }

func (c *consumer) ack(tag uint64, multiple bool) error { return c.ch.Ack(tag, multiple) }

// giveBack returns one delivery to its queue, for another time or another replica.
func (c *consumer) giveBack(tag uint64) error { return c.ch.Nack(tag, false, true) }

// reject gives one delivery to its queue's dead-letter exchange.
func (c *consumer) reject(tag uint64) error { return c.ch.Nack(tag, false, false) }

// cancel stops new deliveries; those that were on their way still arrive, then deliveries is closed.
func (c *consumer) cancel() error { return c.ch.Cancel(c.tag, false) }

// close ends the channel: the broker takes back what is not settled.
func (c *consumer) close() { _ = c.ch.Close() }

// ended tells why the consumer ended, in the broker's words where it gave some.
func (c *consumer) ended() error {
	cancelled := c.cancelled
	patience := time.After(100 * time.Millisecond) // the notices come just before or just after deliveries is closed
	for {
		select {
		case err := <-c.closed:
			return channelEnd(err)
		case _, ok := <-cancelled:
			if ok {
				return errCancelled
			}
			cancelled = nil // closed with the channel: the reason is in closed
		case <-patience:
			return errConsumerGone
		}
	}
}

// fromStream tells whether a delivery looks like one of a stream's, which state their offset. A publisher can write
// that header too: see isStream.
func fromStream(d *delivery) bool {
	_, ok := d.Headers["x-stream-offset"]
	return ok
}

// isStream asks the broker, on a channel of its own: only a stream accepts a consumer with an offset, any other queue
// refuses the argument (https://www.rabbitmq.com/docs/streams#consuming).
func (c *consumer) isStream() bool {
	ch, err := c.conn.Channel()
	if err != nil {
		return false
	}
	defer func() { _ = ch.Close() }()
	if err := ch.Qos(1, 0, false); err != nil {
		return false
	}
	_, err = ch.Consume(c.queue, "", false, false, false, false, amqp.Table{"x-stream-offset": "next"})
	return err == nil
}

// shelf is a queue from which letters are taken one at a time, on a connection of its own. What was taken stays
// unacknowledged until it is acknowledged or the shelf is closed. It is used by one goroutine.
type shelf struct {
	conn   *connection
	ch     *channel
	queue  string
	closed chan *closing
}

// openShelf connects and tells how many letters are ready. ctx ends the connection too: an operation that waits for the
// broker then fails.
func (b *broker) openShelf(ctx context.Context, queue string) (s *shelf, ready int, err error) {
	conn, err := b.dial(ctx, "redrive")
	if err != nil {
		return nil, 0, fmt.Errorf("connect: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) })
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
		return nil, 0, fmt.Errorf("open channel: %w", brokerError(err))
	}
	s = &shelf{conn: conn, ch: ch, queue: queue, closed: ch.NotifyClose(make(chan *closing, 1))}
	declared, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
		return nil, 0, fmt.Errorf("look into queue %s: %w", queue, brokerError(err))
	}
	return s, declared.Messages, nil
}

// take takes the letter at the head of the queue. ok is false when none is ready.
func (s *shelf) take() (d *delivery, ok bool, err error) {
	taken, ok, err := s.ch.Get(s.queue, false)
	if err != nil {
		var refused *closing
		if !errors.As(err, &refused) || !refused.Server {
			err = s.why(err)
		}
		return nil, false, fmt.Errorf("take a letter from queue %s: %w", s.queue, brokerErrorOn(accessRead, err))
	}
	return &taken, ok, nil
}

func (s *shelf) ack(tag uint64) error {
	if err := s.ch.Ack(tag, false); err != nil {
		return s.why(err)
	}
	return nil
}

// why gives the broker's words for the end of the channel, which an operation after it does not have.
func (s *shelf) why(err error) error {
	select {
	case reason := <-s.closed:
		return channelEnd(reason)
	case <-time.After(100 * time.Millisecond):
		return brokerError(err)
	}
}

// giveBackPatience bounds the wait for letters that were given back to be there again.
const giveBackPatience = 2 * time.Second

// cut ends the connection without an orderly end of the channel; an operation that waits for the broker fails.
func (s *shelf) cut() { _ = s.conn.CloseDeadline(time.Now().Add(closeTimeout)) }

// close gives back the n letters that are unacknowledged by ending the channel: a classic queue puts them in their place, a
// quorum queue at its head, many of them perhaps in another order. (What a nack returns goes to the end of a quorum queue
// without a delivery limit.) Nil means that every acknowledgement has reached the broker, which answers in order.
//
// A quorum queue takes a moment. What looks into the queue after this should find the letters, so it waits for that, for
// a while: somebody else may take letters meanwhile.
func (s *shelf) close(ctx context.Context, n int) error {
	defer s.cut()
	returned := s.countsUp(n)
	if err := s.ch.Close(); err != nil {
		return fmt.Errorf("close channel: %w", s.why(err))
	}
	ctx, cancel := context.WithTimeout(ctx, giveBackPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !returned() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// countsUp returns a function that tells whether n more letters are ready in the queue than are now, or it is not known.
func (s *shelf) countsUp(n int) func() bool {
	known := func() bool { return true }
	if n == 0 {
		return known
	}
	ch, err := s.conn.Channel()
	if err != nil {
		return known
	}
	ready := func() (int, error) {
		declared, err := ch.QueueDeclarePassive(s.queue, true, false, false, false, nil)
		return declared.Messages, err
	}
	before, err := ready()
	if err != nil {
		return known
	}
	return func() bool {
		now, err := ready()
		return err != nil || now >= before+n
	}
}
