package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

const (
	// floorLinger is how long a group of the floor waits for one more, and floorGroup how many it takes. Without the wait,
	// groups hold one message each.
	floorLinger = 300 * time.Microsecond
	floorGroup  = 128

	floorClaimed = 30 * time.Second // how long a claim of the floor lives
	floorDone    = time.Hour        // how long a success does
)

// floor is how cheap dedup could be: claims and successes go to Redis in groups, HTTP is written by hand on connections
// that stay open, and finished prefixes are acknowledged at once. It handles no error: a limit to measure against, not a
// design. It runs until the first one.
func floor(cfg consumerConfig) error {
	parsed, err := redis.ParseURL(cfg.redisURL)
	if err != nil {
		return fmt.Errorf("parse REDIS_URL: %w", err)
	}
	service, err := url.Parse(cfg.serviceURL)
	if err != nil {
		return fmt.Errorf("parse FORWARD_URL: %w", err)
	}
	channel, deliveries, err := cfg.consume()
	if err != nil {
		return err
	}
	f := &flooring{
		prefix: cfg.prefix + ":", client: redis.NewClient(parsed), channel: channel,
		work: make(chan amqp.Delivery, cfg.prefetch), finished: make(chan amqp.Delivery, cfg.prefetch),
	}
	ended := make(chan error, cfg.workers+2)
	go func() { ended <- f.claim(deliveries) }()
	for range cfg.workers {
		go func() { ended <- f.post(service.Host) }()
	}
	go func() { ended <- f.settle() }()
	return <-ended
}

type flooring struct {
	prefix   string
	client   *redis.Client
	channel  *amqp.Channel
	work     chan amqp.Delivery // claimed
	finished chan amqp.Delivery // to record and acknowledge
}

// claim takes each ID that nobody has.
func (f *flooring) claim(deliveries <-chan amqp.Delivery) error {
	ctx := context.Background()
	for {
		group := nextGroup(deliveries)
		if len(group) == 0 {
			return errors.New("the broker ended the consumer")
		}
		claims := f.client.Pipeline()
		for _, d := range group {
			claims.SetNX(ctx, f.prefix+d.MessageId, "p", floorClaimed)
		}
		answers, err := claims.Exec(ctx)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		for i, d := range group {
			if answers[i].(*redis.BoolCmd).Val() {
				f.work <- d
			} else {
				f.finished <- d
			}
		}
	}
}

// settle records successes, and acknowledges as far as all before are finished too.
func (f *flooring) settle() error {
	ctx := context.Background()
	done, next := map[uint64]bool{}, uint64(1)
	for {
		group := nextGroup(f.finished)
		successes := f.client.Pipeline()
		for _, d := range group {
			successes.Set(ctx, f.prefix+d.MessageId, "d", floorDone)
			done[d.DeliveryTag] = true
		}
		if _, err := successes.Exec(ctx); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		last := uint64(0)
		for ; done[next]; next++ {
			delete(done, next)
			last = next
		}
		if last == 0 {
			continue
		}
		if err := f.channel.Ack(last, true); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
}

// nextGroup returns what arrives within floorLinger of each other; nothing when in has ended.
func nextGroup(in <-chan amqp.Delivery) []amqp.Delivery {
	first, open := <-in
	if !open {
		return nil
	}
	group := []amqp.Delivery{first}
	for len(group) < floorGroup {
		select {
		case d, open := <-in:
			if !open {
				return group
			}
			group = append(group, d)
		case <-time.After(floorLinger):
			return group
		}
	}
	return group
}

// post sends what is claimed over a connection of its own.
func (f *flooring) post(addr string) error {
	connection, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	answers := bufio.NewReader(connection)
	request := make([]byte, 0, 8<<10)
	for d := range f.work {
		request = fmt.Appendf(request[:0], "POST / HTTP/1.1\r\nHost: app\r\nIdempotency-Key: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
			d.MessageId, d.ContentType, len(d.Body))
		request = append(request, d.Body...)
		if _, err := connection.Write(request); err != nil {
			return fmt.Errorf("post: %w", err)
		}
		if err := skipAnswer(answers); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		f.finished <- d
	}
	return nil
}

func skipAnswer(answers *bufio.Reader) error {
	length := 0
	for {
		line, err := answers.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length:")); found {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	_, err := answers.Discard(length)
	return err
}
