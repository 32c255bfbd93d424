package testkit

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Holding is a consumer that takes messages and settles none: another replica at work, or somebody who has the queue for
// himself.
type Holding struct {
	Deliveries []amqp.Delivery

	channel *amqp.Channel
}

// Hold consumes a queue and waits for n messages, which it keeps until Release. An exclusive consumer is the only one
// that a classic queue may have; RabbitMQ 3.10 does not keep others from a quorum queue.
func (c *Client) Hold(ctx context.Context, queue string, n int, exclusive bool) (*Holding, error) {
	channel, err := c.connection.Channel()
	if err != nil {
		return nil, fmt.Errorf("hold messages of queue %s: %w", queue, err)
	}
	h := &Holding{channel: channel}
	if err := h.take(ctx, queue, n, exclusive); err != nil {
		return nil, errors.Join(fmt.Errorf("hold messages of queue %s: %w", queue, err), h.Release())
	}
	return h, nil
}

func (h *Holding) take(ctx context.Context, queue string, n int, exclusive bool) error {
	if err := h.channel.Qos(max(n, 1), 0, false); err != nil { // no more than wanted leaves the queue
		return err
	}
	deliveries, err := h.channel.Consume(queue, "", false, exclusive, false, false, nil)
	if err != nil {
		return err
	}
	for len(h.Deliveries) < n {
		select {
		case d, open := <-deliveries:
			if !open {
				return fmt.Errorf("the broker ended the consumer after %d of %d messages", len(h.Deliveries), n)
			}
			h.Deliveries = append(h.Deliveries, d)
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages: %w", len(h.Deliveries), n, context.Cause(ctx))
		}
	}
	return nil
}

// Release ends the consumer: what it holds goes back to the queue.
func (h *Holding) Release() error {
	if err := h.channel.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("release held messages: %w", err)
	}
	return nil
}
