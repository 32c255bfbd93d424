package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// unconfirmed is how many messages may wait for their confirms before the publisher waits too.
	unconfirmed = 2_000

	// copyDistance is how many messages lie between a message and its copy: more than any prefetch of the bounded scenarios,
	// so that most copies meet a message that is done.
	copyDistance = 1_000
)

// publisher fills a run's queue. It is used by one goroutine.
type publisher struct {
	channel *amqp.Channel
	queue   string
	size    int // of a body
	pad     string
	ledger  *ledger
	waiting []*amqp.DeferredConfirmation
}

func openPublisher(connection *amqp.Connection, queue string, size int, l *ledger) (*publisher, error) {
	channel, err := connection.Channel()
	if err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	if err := channel.Confirm(false); err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	return &publisher{channel: channel, queue: queue, size: size, pad: strings.Repeat("x", size), ledger: l}, nil
}

// publish sends a message, or a copy of it: the same ID and the same body.
func (p *publisher) publish(ctx context.Context, message int) error {
	id := p.ledger.id(message)
	body := p.body(id)
	p.ledger.published(message, time.Now())
	confirm, err := p.channel.PublishWithDeferredConfirmWithContext(ctx, "", p.queue, false, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: id, Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.waiting = append(p.waiting, confirm)
	if len(p.waiting) < unconfirmed {
		return nil
	}
	return p.confirm(ctx, unconfirmed/2)
}

// body is JSON of the publisher's size, or as much as the ID takes.
func (p *publisher) body(id string) []byte {
	const frame = len(`{"messageId":"","pad":""}`)
	return []byte(`{"messageId":"` + id + `","pad":"` + p.pad[:max(0, p.size-frame-len(id))] + `"}`)
}

// confirm waits for the oldest n confirms.
func (p *publisher) confirm(ctx context.Context, n int) error {
	for _, c := range p.waiting[:n] {
		acknowledged, err := c.WaitContext(ctx)
		if err != nil {
			return fmt.Errorf("wait for confirm: %w", err)
		}
		if !acknowledged {
			return errors.New("publish: the broker refused a message, or ended the channel")
		}
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
	return nil
}

// settle waits for all confirms.
func (p *publisher) settle(ctx context.Context) error { return p.confirm(ctx, len(p.waiting)) }

// sequence is in which order messages and copies of them are published. So many per cent of the messages, spread evenly,
// come once more, copyDistance later, or at the end.
func sequence(messages, copies int) iter.Seq[int] {
	total, copied := messages*copies/100, 0
	original := func() int { return copied * 100 / max(copies, 1) }
	return func(yield func(int) bool) {
		copied = 0
		for n := range messages {
			if !yield(n) {
				return
			}
			for copied < total && original()+copyDistance <= n {
				if !yield(original()) {
					return
				}
				copied++
			}
		}
		for ; copied < total; copied++ {
			if !yield(original()) {
				return
			}
		}
	}
}
