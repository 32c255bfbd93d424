package testkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// batch is how many publishes wait for their confirms together.
const batch = 500

// Message is a publishing and where it goes.
type Message struct {
	Exchange, RoutingKey string
	amqp.Publishing
}

// Client is a publisher's and operator's connection to a broker. It is safe for concurrent use.
type Client struct {
	url        string
	connection *amqp.Connection

	mu       sync.Mutex // one batch at a time, so that returns belong to it
	confirms *amqp.Channel
	returns  chan amqp.Return
}

// Dial connects with a channel in confirm mode.
func Dial(url string) (*Client, error) {
	connection, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(10 * time.Second)})
	if err != nil {
		return nil, fmt.Errorf("dial broker: %w", err)
	}
	c := &Client{url: url, connection: connection}
	if c.confirms, err = connection.Channel(); err == nil {
		err = c.confirms.Confirm(false)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open publisher: %w", err), connection.Close())
	}
	// Room for a whole batch: the library delivers returns before the confirm of the same message, and waits for room.
	c.returns = c.confirms.NotifyReturn(make(chan amqp.Return, batch))
	return c, nil
}

// Publish sends messages, mandatory, and returns nil when the broker has confirmed and returned none of them.
func (c *Client) Publish(ctx context.Context, messages ...Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(messages) > 0 {
		n := min(batch, len(messages))
		if err := c.publishLocked(ctx, messages[:n]); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		messages = messages[n:]
	}
	return nil
}

func (c *Client) publishLocked(ctx context.Context, messages []Message) error {
	var confirmations []*amqp.DeferredConfirmation
	for _, m := range messages {
		confirmation, err := c.confirms.PublishWithDeferredConfirmWithContext(
			ctx, m.Exchange, m.RoutingKey, true, false, m.Publishing)
		if err != nil {
			return err
		}
		confirmations = append(confirmations, confirmation)
	}
	for _, confirmation := range confirmations {
		acknowledged, err := confirmation.WaitContext(ctx)
		if err != nil {
			return fmt.Errorf("wait for confirm: %w", err)
		}
		if !acknowledged {
			return errors.New("no confirm: the broker refused a message or ended the channel")
		}
	}
	return c.returnedLocked()
}

// returnedLocked empties the returns, which all came before the last confirm.
func (c *Client) returnedLocked() error {
	var err error
	for {
		select {
		case r, open := <-c.returns:
			if !open {
				return err // the channel ended after the last confirm
			}
			err = errors.Join(err, fmt.Errorf("returned from exchange %q, key %q: %s", r.Exchange, r.RoutingKey, r.ReplyText))
		default:
			return err
		}
	}
}

// PublishTo sends messages to a queue through the default exchange.
func (c *Client) PublishTo(ctx context.Context, queue string, publishings ...amqp.Publishing) error {
	messages := make([]Message, len(publishings))
	for i, p := range publishings {
		messages[i] = Message{RoutingKey: queue, Publishing: p}
	}
	return c.Publish(ctx, messages...)
}

// DeclareQuorum declares a durable quorum queue.
func (c *Client) DeclareQuorum(queue string, args amqp.Table) error {
	return c.declare(queue, amqp.QueueTypeQuorum, args)
}

// DeclareClassic declares a durable classic queue.
func (c *Client) DeclareClassic(queue string, args amqp.Table) error {
	return c.declare(queue, amqp.QueueTypeClassic, args)
}

func (c *Client) declare(queue, kind string, args amqp.Table) error {
	all := amqp.Table{amqp.QueueTypeArg: kind}
	maps.Copy(all, args)
	// RabbitMQ 3.10 fails now and then on a busy machine, when its tick meets a quorum queue that is just being made, and
	// takes the whole connection with it: so each try has one of its own.
	var err error
	for range declareTries {
		err = declareOnce(c.url, queue, all)
		var e *amqp.Error
		if !errors.As(err, &e) || e.Code != amqp.InternalError {
			break
		}
		time.Sleep(pollInterval)
	}
	if err != nil {
		return fmt.Errorf("declare queue %s: %w", queue, err)
	}
	return nil
}

const declareTries = 10

func declareOnce(url, queue string, args amqp.Table) error {
	connection, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(10 * time.Second)})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	_, err = channel.QueueDeclare(queue, true, false, false, false, args)
	return err
}

// DeclareExchange declares a durable exchange of a kind such as fanout.
func (c *Client) DeclareExchange(name, kind string) error {
	return c.withChannel("declare exchange "+name, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(name, kind, true, false, false, false, nil)
	})
}

// Bind binds a queue to an exchange.
func (c *Client) Bind(queue, routingKey, exchange string) error {
	return c.withChannel("bind queue "+queue, func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, routingKey, exchange, false, nil)
	})
}

// Depth returns how many messages are ready in a queue, and how many consumers it has. A quorum queue without a leader,
// as after the broker's start, says 0.
func (c *Client) Depth(queue string) (ready, consumers int, err error) {
	err = c.withChannel("inspect queue "+queue, func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		ready, consumers = q.Messages, q.Consumers
		return err
	})
	return ready, consumers, err
}

// Exists tells whether there is such a queue.
func (c *Client) Exists(queue string) (bool, error) {
	_, _, err := c.Depth(queue)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, err
}

// Drain takes and acknowledges every message that is ready in a queue now.
func (c *Client) Drain(queue string) ([]amqp.Delivery, error) {
	var all []amqp.Delivery
	err := c.withChannel("drain queue "+queue, func(ch *amqp.Channel) error {
		for {
			delivery, ok, err := ch.Get(queue, true)
			if err != nil || !ok {
				return err
			}
			all = append(all, delivery)
		}
	})
	return all, err
}

// Take waits for n messages of a queue and acknowledges them. When ctx ends first it returns what came, and an error.
func (c *Client) Take(ctx context.Context, queue string, n int) ([]amqp.Delivery, error) {
	var taken []amqp.Delivery
	err := c.withChannel("take from queue "+queue, func(ch *amqp.Channel) error {
		if err := ch.Qos(n, 0, false); err != nil { // no more than wanted leaves the queue
			return err
		}
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		for len(taken) < n {
			select {
			case d, open := <-deliveries:
				if !open {
					return fmt.Errorf("the broker ended the consumer after %d of %d messages", len(taken), n)
				}
				taken = append(taken, d)
			case <-ctx.Done():
				return errors.Join(fmt.Errorf("%d of %d messages: %w", len(taken), n, context.Cause(ctx)), ackAll(taken))
			}
		}
		return ackAll(taken)
	})
	return taken, err
}

// ackAll acknowledges deliveries of one channel.
func ackAll(deliveries []amqp.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	return deliveries[len(deliveries)-1].Ack(true)
}

// WaitEmpty returns nil once a queue has no ready message. Messages with a consumer do not count: see
// Broker.QueueCounts; nor is it to be trusted just after the broker's start, see Depth.
func (c *Client) WaitEmpty(ctx context.Context, queue string) error {
	tick := time.NewTicker(5 * pollInterval)
	defer tick.Stop()
	for {
		ready, _, err := c.Depth(queue)
		if err != nil || ready == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for queue %s, %d messages left: %w", queue, ready, context.Cause(ctx))
		}
	}
}

// Purge removes the ready messages of a queue.
func (c *Client) Purge(queue string) error {
	return c.withChannel("purge queue "+queue, func(ch *amqp.Channel) error {
		_, err := ch.QueuePurge(queue, false)
		return err
	})
}

// Delete deletes a queue and all in it.
func (c *Client) Delete(queue string) error {
	return c.withChannel("delete queue "+queue, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(queue, false, false, false)
		return err
	})
}

// Close ends the connection. A connection that the broker has ended is no error.
func (c *Client) Close() error {
	if err := c.connection.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// withChannel gives each operation a channel of its own: the broker closes it when the operation is refused.
func (c *Client) withChannel(what string, do func(*amqp.Channel) error) error {
	channel, err := c.connection.Channel()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer channel.Close()
	if err := do(channel); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
