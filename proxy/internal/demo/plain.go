package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// plainConfig is what the plain consumer is told through its environment.
type plainConfig struct {
	brokerURL, queue, serviceURL string
	retry                        time.Duration // before a message goes back because the service did not do it
}

func (c plainConfig) environment() map[string]string {
	return map[string]string{"PLAIN_BROKER_URL": c.brokerURL, "PLAIN_QUEUE": c.queue, "PLAIN_SERVICE_URL": c.serviceURL}
}

func plainConfigFrom(getenv func(string) string) plainConfig {
	return plainConfig{
		brokerURL: getenv("PLAIN_BROKER_URL"), queue: getenv("PLAIN_QUEUE"), serviceURL: getenv("PLAIN_SERVICE_URL"),
		retry: time.Second,
	}
}

const (
	plainPrefetch  = 10
	plainTimeout   = 10 * time.Second // of a request
	plainReconnect = 500 * time.Millisecond
)

// consume is the plain consumer: it POSTs each message and acknowledges it when the service says 2xx. It runs until ctx ends.
func consume(ctx context.Context, cfg plainConfig, out io.Writer) int {
	log := slog.New(slog.NewJSONHandler(out, nil))
	client := &http.Client{Timeout: plainTimeout}
	for ctx.Err() == nil {
		if err := consumeOnce(ctx, cfg, client, log); err != nil && ctx.Err() == nil {
			log.Warn("connection lost", "error", err.Error())
			pause(ctx, plainReconnect)
		}
	}
	return exitOK
}

// consumeOnce works until its connection or ctx ends.
func consumeOnce(ctx context.Context, cfg plainConfig, client *http.Client, log *slog.Logger) error {
	connection, err := amqp.DialConfig(cfg.brokerURL, amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	if err := channel.Qos(plainPrefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.Consume(cfg.queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case d, open := <-deliveries:
			if !open {
				return errors.New("the broker ended the consumer")
			}
			if err := handle(ctx, cfg, client, log, d); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// handle does one message. The error is one of the connection.
func handle(ctx context.Context, cfg plainConfig, client *http.Client, log *slog.Logger, d amqp.Delivery) error {
	id := orderID(d.Body)
	status, err := post(ctx, client, cfg.serviceURL, d)
	fate := "acked"
	switch {
	case err == nil && status/100 == 2:
		err = d.Ack(false)
	case err == nil && status/100 == 4:
		fate = "rejected" // it would fail for ever; without a dead-letter exchange the broker drops it
		err = d.Nack(false, false)
	default:
		log.Warn("the service did not do it: putting it back", "id", id, "status", status, "error", fmt.Sprint(err))
		pause(ctx, cfg.retry)
		return d.Nack(false, true)
	}
	if err == nil {
		log.Info(settledMessage, "id", id, "fate", fate)
	}
	return err
}

func post(ctx context.Context, client *http.Client, url string, d amqp.Delivery) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", d.ContentType)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, err
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
