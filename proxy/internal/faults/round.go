package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/faults/check"
)

// round publishes under faults for a while, waits until everything has settled, and returns what was written down.
func (s *stage) round(seed uint64, d time.Duration, lanes []lane) (*check.History, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p := &publisher{
		url: s.servers.Broker.URL, service: s.service, draw: chance(fmt.Sprint(seed), "publisher"), prefix: fmt.Sprintf("s%d", seed), bodies: 1500,
	}
	defer p.close()
	published := make(chan error, 1)
	go func() { published <- p.run(ctx, settling) }()
	faults, err := s.chaos(ctx, seed, lanes)
	if err := errors.Join(err, <-published); err != nil {
		return nil, err
	}
	unsettled, err := s.settle()
	if err != nil {
		return nil, err
	}
	if unsettled != "" {
		s.logf("not everything has settled:\n%s", unsettled)
	}
	h := &check.History{Queues: map[string]check.Queue{}, Publications: p.written, Faults: faults, End: time.Now()}
	for _, q := range queueNames {
		h.Queues[q] = queueOf(q)
	}
	return h, s.fill(h)
}

// fill reads all the journals.
func (s *stage) fill(h *check.History) error {
	var requestsErr, journalErr, processesErr, writesErr, lettersErr error
	h.Requests, requestsErr = s.wire.take()
	entries, journalErr := s.service.Journal.Take()
	h.Processes, processesErr = s.processes()
	h.Writes, writesErr = s.log.take(keys(h.Publications))
	h.Letters, h.Left, lettersErr = s.collect()
	if err := errors.Join(requestsErr, journalErr, processesErr, writesErr, lettersErr); err != nil {
		return err
	}
	var err error
	h.Requests, err = joined(h.Requests, entries)
	return errors.Join(err, s.measure())
}

func letterOf(id check.ID, d amqp.Delivery) check.Letter {
	reason, _ := d.Headers["x-rabbitonce-reason"].(string)
	attempts, _ := d.Headers["x-rabbitonce-attempts"].(int64)
	for name := range d.Headers {
		if strings.HasPrefix(name, "x-rabbitonce-") || name == "x-delivery-count" || name == "x-acquired-count" { // the broker's, of the reading
			delete(d.Headers, name)
		}
	}
	return check.Letter{ID: id, Reason: reason, Attempts: int(attempts), Payload: payloadOf(amqp.Publishing{
		MessageId: d.MessageId, Body: d.Body, DeliveryMode: d.DeliveryMode, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		Type: d.Type, AppId: d.AppId, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, Priority: d.Priority,
		Timestamp: d.Timestamp, UserId: d.UserId, Headers: d.Headers,
	})}
}
