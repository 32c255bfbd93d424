package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/testkit"
)

// stage is all that the story is played on: two sides behind one fan-out.
type stage struct {
	options
	printer *printer
	servers *servers

	name       string // begins the name of all that the demo makes on a broker or in Redis; nobody else has it
	exchange   string
	operator   *testkit.Client     // straight to the broker
	publisher  *publisher          // through a link of its own
	link       *testkit.FaultProxy // between the broker and both consumers
	plain      *side
	rabbitonce *side

	orders   int      // created so far
	declared []string // queues to delete at the end
	closers  []func() error
}

// consumerName is the second half of each record's identity, instead of the default {vhost}/{queue}.
const consumerName = "demo"

// build makes everything and starts both consumers. On an error too the stage has to be closed.
func (s *stage) build() error {
	s.name = "rabbitonce-demo-" + strings.ToLower(rand.Text()[:10])
	s.exchange = s.name + ".orders"
	s.plain = &side{name: "the plain consumer", queue: s.name + ".plain"}
	s.rabbitonce = &side{name: "rabbitonce", queue: s.name + ".rabbitonce", dead: s.name + ".rabbitonce.dead"}
	steps := []func() error{s.connect, s.declare, s.openShops, s.equip, s.plain.start, s.rabbitonce.start}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	return nil
}

// connect opens the proxies and the connections of publisher and operator.
func (s *stage) connect() error {
	var err error
	if s.operator, err = testkit.Dial(s.servers.brokerURL); err != nil {
		return err
	}
	s.closing(s.operator.Close)
	address, err := brokerAddress(s.servers.brokerURL)
	if err != nil {
		return err
	}
	if s.link, err = testkit.NewFaultProxy(address, testkit.Raw); err != nil {
		return err
	}
	s.closing(s.link.Close)
	slow, err := testkit.NewFaultProxy(address, testkit.Raw)
	if err != nil {
		return err
	}
	s.closing(slow.Close)
	url, err := via(s.servers.brokerURL, slow.Addr)
	if err != nil {
		return err
	}
	if s.publisher, err = openPublisher(url, slow, s.exchange); err != nil {
		return err
	}
	s.closing(s.publisher.close)
	return nil
}

// leftoverLife is after how long everything on given servers goes by itself, should the demo be killed.
const leftoverLife = 15 * time.Minute

// declare makes the fan-out. The exchange goes by itself with its last queue.
func (s *stage) declare() error {
	if err := s.publisher.channel.ExchangeDeclare(s.exchange, "fanout", true, true, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange: %w", err)
	}
	s.closing(s.forget)
	s.closing(s.deleteQueues)
	for _, queue := range []string{s.plain.queue, s.rabbitonce.queue, s.rabbitonce.dead} {
		if err := s.operator.DeclareQuorum(queue, amqp.Table{amqp.QueueTTLArg: leftoverLife.Milliseconds()}); err != nil {
			return err
		}
		s.declared = append(s.declared, queue)
	}
	for _, queue := range []string{s.plain.queue, s.rabbitonce.queue} {
		if err := s.operator.Bind(queue, "", s.exchange); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) deleteQueues() error {
	var err error
	for _, queue := range s.declared {
		err = errors.Join(err, s.operator.Delete(queue))
	}
	return err
}

func (s *stage) openShops() error {
	for _, side := range []*side{s.plain, s.rabbitonce} {
		var err error
		if side.shop, err = openShop(); err != nil {
			return err
		}
		s.closing(side.close)
	}
	return nil
}

// equip says what the consumers run with. rabbitonce's timeout and lease are shorter than their defaults so that nobody
// waits long to see what becomes of the killed one.
func (s *stage) equip() error {
	url, err := via(s.servers.brokerURL, s.link.Addr)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.plain.binary, s.plain.args = self, []string{consumeCommand}
	s.plain.env = plainConfig{brokerURL: url, queue: s.plain.queue, serviceURL: s.plain.shop.URL + "/orders"}.environment()
	s.rabbitonce.binary = s.servers.program
	s.rabbitonce.env = map[string]string{
		"RABBITMQ_URL":       url,
		"REDIS_URL":          s.servers.redisURL,
		"QUEUES":             s.rabbitonce.queue,
		"FORWARD_URL":        s.rabbitonce.shop.URL + "/orders",
		"DEDUP_ID_FROM":      "json:/messageId",
		"FORWARD_ON_UNKNOWN": "deadletter",
		"FORWARD_TIMEOUT":    "5s",
		"DEDUP_LEASE":        "4s",
		"RETRY_BACKOFF":      "1s,5s",
		"RETRY_HOLD":         "1m", // no wait queues, which the demo would have to remove
		"RETRY_MAX_AGE":      "5m",
		"DEDUP_RETENTION":    leftoverLife.String(),
		"DEDUP_PREFIX":       s.name,
		"DEDUP_CONSUMER":     consumerName,
		"DEADLETTER_QUEUE":   s.rabbitonce.dead,
		"LOG_LEVEL":          "debug", // a line for each delivery that it is done with, see settledMessage
		"ADMIN_ADDR":         "",      // unset, whatever the kit's default
	}
	return nil
}

// forget removes the records of all orders.
func (s *stage) forget() error {
	if s.servers.redis != nil {
		return nil // it goes as a whole
	}
	var keys []string
	for number := range s.orders {
		id := dedup.ID{Value: newOrder(number + 1).MessageID}
		keys = append(keys, dedup.Key(s.name, consumerName, id))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return deleteKeys(ctx, s.servers.redisURL, keys)
}

// finish ends both consumers and makes sure that their queues are empty: what is left there could still be charged,
// and the table would not be the last word.
func (s *stage) finish(ctx context.Context) error {
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if err := side.stop(ctx); err != nil {
			return err
		}
		left := 0
		err := awaitGone(ctx, func() (bool, error) {
			ready, consumers, err := s.operator.Depth(side.queue)
			left = ready
			return consumers == 0, err
		})
		if err != nil {
			return err
		}
		if left > 0 {
			return fmt.Errorf("finish: %s left %d messages in its queue", side.name, left)
		}
	}
	return s.rabbitonce.collect(s.operator)
}

// closing notes what is to be closed at the end, last first.
func (s *stage) closing(do func() error) { s.closers = append(s.closers, do) }

func (s *stage) close() error {
	var err error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		err = errors.Join(err, s.closers[last]())
		s.closers = s.closers[:last]
	}
	return err
}
