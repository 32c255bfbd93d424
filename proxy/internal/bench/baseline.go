package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	amqp "github.com/rabbitmq/amqp091-go"
)

// baseline is the simplest consumer in Go: each worker POSTs a message and acknowledges it. It has no dedup, no retries
// and no error handling: the first error ends it. It runs until then.
func baseline(cfg consumerConfig) error {
	_, deliveries, err := cfg.consume()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.workers}}
	ended := make(chan error, cfg.workers)
	for range cfg.workers {
		go func() { ended <- postEach(client, cfg.serviceURL, deliveries) }()
	}
	return <-ended
}

func postEach(client *http.Client, url string, deliveries <-chan amqp.Delivery) error {
	for d := range deliveries {
		if err := postOne(client, url, d); err != nil {
			return err
		}
		if err := d.Ack(false); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return errors.New("the broker ended the consumer")
}

func postOne(client *http.Client, url string, d amqp.Delivery) error {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return err
	}
	request.Header.Set("Idempotency-Key", d.MessageId)
	request.Header.Set("Content-Type", d.ContentType)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
