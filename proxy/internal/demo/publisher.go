package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// publisher publishes orders and keeps the broker's confirms. It reaches the broker through a proxy of its own, which
// can hold confirms up; the consumers' troubles do not touch it. It is used by one goroutine.
type publisher struct {
	exchange   string
	link       *testkit.FaultProxy
	connection *amqp.Connection
	channel    *amqp.Channel
	sent       []sending
}

// sending is a message on its way to the broker.
type sending struct {
	id      string
	confirm *amqp.DeferredConfirmation
}

// confirmPatience is after how long without a confirm the publisher publishes again.
const confirmPatience = 300 * time.Millisecond

func openPublisher(url string, link *testkit.FaultProxy, exchange string) (*publisher, error) {
	connection, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(10 * time.Second)})
	if err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	channel, err := connection.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open publisher: %w", err), connection.Close())
	}
	return &publisher{exchange: exchange, link: link, connection: connection, channel: channel}, nil
}

// publish sends an order and waits for its confirm.
func (p *publisher) publish(ctx context.Context, o order) error {
	if err := p.send(ctx, o); err != nil {
		return err
	}
	return p.settle(ctx)
}

// publishAgain is what a publisher does whose confirm is late: it gives up waiting and publishes the same order again.
// Then both confirms arrive.
func (p *publisher) publishAgain(ctx context.Context, o order) error {
	p.link.Stall(testkit.ToClient)
	defer p.link.Unstall(testkit.ToClient)
	if err := p.send(ctx, o); err != nil {
		return err
	}
	late, cancel := context.WithTimeout(ctx, confirmPatience)
	defer cancel()
	if _, err := p.sent[len(p.sent)-1].confirm.WaitContext(late); err == nil {
		return errors.New("publish again: the confirm was not late")
	}
	if err := p.send(ctx, o); err != nil {
		return err
	}
	p.link.Unstall(testkit.ToClient)
	return p.settle(ctx)
}

func (p *publisher) send(ctx context.Context, o order) error {
	body, err := o.body()
	if err != nil {
		return fmt.Errorf("publish %s: %w", o.MessageID, err)
	}
	confirm, err := p.channel.PublishWithDeferredConfirmWithContext(ctx, p.exchange, "", false, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Type: orderType, Timestamp: time.Now(), Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish %s: %w", o.MessageID, err)
	}
	p.sent = append(p.sent, sending{id: o.MessageID, confirm: confirm})
	return nil
}

// settle waits until the broker has answered for all that was sent.
func (p *publisher) settle(ctx context.Context) error {
	for _, s := range p.sent {
		if _, err := s.confirm.WaitContext(ctx); err != nil {
			return fmt.Errorf("wait for the confirm of %s: %w", s.id, context.Cause(ctx))
		}
		if !s.confirm.Acked() {
			return fmt.Errorf("publish %s: the broker did not confirm it", s.id)
		}
	}
	return nil
}

// confirmed returns the ID of each message that the broker confirmed.
func (p *publisher) confirmed() []string {
	var ids []string
	for _, s := range p.sent {
		if s.confirm.Acked() {
			ids = append(ids, s.id)
		}
	}
	return ids
}

func (p *publisher) close() error {
	if err := p.connection.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
