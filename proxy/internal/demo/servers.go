package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"rabbitonce/proxy/internal/testkit"
)

// servers are the broker and the store, given or throwaway, and the program.
type servers struct {
	brokerURL string
	redisURL  string
	program   string

	broker *testkit.Broker // nil when given
	redis  *testkit.Redis  // nil when given
	binary *testkit.Binary
}

// startServers starts what is not given, and builds the program meanwhile, with a line for each as it is there. On an
// error too what it returns has to be closed.
func startServers(ctx context.Context, given options, p *printer) (*servers, error) {
	s := &servers{brokerURL: given.brokerURL, redisURL: given.redisURL}
	if given.brokerURL != "" {
		if err := checkBrokerURL(given.brokerURL); err != nil {
			return s, err
		}
	}
	p.line("preparing RabbitMQ, Redis and the rabbitonce program ...")
	var work sync.WaitGroup
	var mu sync.Mutex // guards problems and the printer
	var problems []error
	part := func(name string, do func() error) {
		work.Go(func() {
			began := time.Now()
			err := do()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, err)
				return
			}
			p.line("  %-44s %5.1f s", name, time.Since(began).Seconds())
		})
	}
	if given.brokerURL != "" {
		part("RabbitMQ of RABBITMQ_URL answers", func() error { return pingBroker(s.brokerURL) })
	} else {
		part("throwaway RabbitMQ started", func() error { return s.startBroker(ctx) })
	}
	if given.redisURL != "" {
		part("Redis of REDIS_URL answers", func() error { return pingRedis(ctx, s.redisURL) })
	} else {
		part("throwaway Redis started", func() error { return s.startRedis(ctx) })
	}
	part("rabbitonce built", func() (err error) { s.binary, err = testkit.Build(ctx, false); return err })
	work.Wait()
	if s.binary != nil {
		s.program = s.binary.Path
	}
	return s, errors.Join(problems...)
}

func (s *servers) startBroker(ctx context.Context) error {
	broker, err := testkit.StartBroker(ctx, testkit.BrokerOptions{})
	if err != nil {
		return err
	}
	s.broker, s.brokerURL = broker, broker.URL
	return nil
}

func (s *servers) startRedis(ctx context.Context) error {
	store, err := testkit.StartRedis(ctx, testkit.RedisOptions{})
	if err != nil {
		return err
	}
	s.redis, s.redisURL = store, store.URL
	return nil
}

func (s *servers) close() error {
	var err error
	if s.broker != nil {
		err = s.broker.Close()
	}
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	if s.binary != nil {
		err = errors.Join(err, s.binary.Remove())
	}
	return err
}

// checkBrokerURL refuses what the demo cannot put its proxy in front of. Its words show nothing of the URL, which may
// hold a password.
func checkBrokerURL(text string) error {
	if strings.HasPrefix(text, "amqps:") {
		return usageError{"RABBITMQ_URL: the demo cuts connections with a proxy in between, which TLS would notice: give an amqp:// URL, or unset it for a throwaway broker"}
	}
	if _, err := amqp.ParseURI(text); err != nil || strings.Contains(text, ",") {
		return usageError{"RABBITMQ_URL: write amqp://user:password@host:5672/vhost, with one host, or unset it for a throwaway broker"}
	}
	return nil
}

// brokerAddress returns host:port of a URL that checkBrokerURL accepts.
func brokerAddress(text string) (string, error) {
	uri, err := amqp.ParseURI(text)
	if err != nil {
		return "", errors.New("RABBITMQ_URL is not understood")
	}
	return net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)), nil
}

// via returns the URL with another address, such as a proxy's.
func via(text, address string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("RABBITMQ_URL is not understood")
	}
	u.Host = address
	return u.String(), nil
}

func pingBroker(url string) error {
	client, err := testkit.Dial(url)
	if err != nil {
		return fmt.Errorf("RABBITMQ_URL: %w", err)
	}
	return client.Close()
}

func pingRedis(ctx context.Context, url string) error {
	return withRedis(url, func(client *redis.Client) error { return client.Ping(ctx).Err() })
}

// deleteKeys removes records from Redis.
func deleteKeys(ctx context.Context, url string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	return withRedis(url, func(client *redis.Client) error { return client.Del(ctx, keys...).Err() })
}

func withRedis(url string, do func(*redis.Client) error) error {
	parsed, err := redis.ParseURL(url)
	if err != nil {
		return usageError{"REDIS_URL: write redis://host:6379/0, or unset it for a throwaway Redis"}
	}
	parsed.MaxRetries, parsed.DialerRetries, parsed.ContextTimeoutEnabled = -1, 1, true
	redis.SetLogger(silent{}) // what it writes to standard error it returns as well
	client := redis.NewClient(parsed)
	defer client.Close()
	if err := do(client); err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	return nil
}

// silent is a logger for the Redis library that drops everything.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
