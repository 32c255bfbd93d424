package main

import (
	"errors"
	"fmt"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consumerConfig is what a yardstick is told, in the same variables as rabbitonce.
type consumerConfig struct {
	brokerURL, redisURL, queue, serviceURL string
	prefix                                 string // of its keys
	workers, prefetch                      int
}

func consumerConfigFrom(getenv func(string) string) (consumerConfig, error) {
	c := consumerConfig{
		brokerURL: getenv("RABBITMQ_URL"), redisURL: getenv("REDIS_URL"), queue: getenv("QUEUES"), serviceURL: getenv("FORWARD_URL"),
		prefix: getenv("DEDUP_PREFIX"),
	}
	var workersErr, prefetchErr error
	c.workers, workersErr = positive("FORWARD_CONCURRENCY", getenv)
	c.prefetch, prefetchErr = positive("PREFETCH", getenv)
	var missing error
	if c.brokerURL == "" || c.queue == "" || c.serviceURL == "" {
		missing = errors.New("RABBITMQ_URL, QUEUES and FORWARD_URL are required")
	}
	return c, errors.Join(missing, workersErr, prefetchErr)
}

func positive(name string, getenv func(string) string) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s is %q: want a number from 1 on", name, getenv(name))
	}
	return n, nil
}

// consume opens a connection for a consumer that ends with its process.
func (c consumerConfig) consume() (*amqp.Channel, <-chan amqp.Delivery, error) {
	connection, err := amqp.Dial(c.brokerURL)
	if err != nil {
		return nil, nil, fmt.Errorf("dial broker: %w", err)
	}
	channel, err := connection.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open channel: %w", err)
	}
	if err := channel.Qos(c.prefetch, 0, false); err != nil {
		return nil, nil, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := channel.Consume(c.queue, "", false, false, false, false, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("consume: %w", err)
	}
	return channel, deliveries, nil
}
