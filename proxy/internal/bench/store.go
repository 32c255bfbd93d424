package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// recordBytes is the length of a record's value, and recordLife how long it lives: see docs/stores.md.
	recordBytes = 20
	recordLife  = 48 * time.Hour

	storeBatch = 10_000 // commands at once
)

// store is the benchmark's own connection to Redis.
type store struct {
	client *redis.Client
}

func openStore(url string) (*store, error) {
	parsed, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("parse REDIS_URL: %w", err)
	}
	parsed.ReadTimeout, parsed.WriteTimeout = time.Minute, time.Minute
	return &store{client: redis.NewClient(parsed)}, nil
}

func (s *store) close() error { return s.client.Close() }

// fill puts records from one number to another into the store: keys and values as those of a queue named orders.
func (s *store) fill(ctx context.Context, prefix string, from, to int) error {
	value := strings.Repeat("r", recordBytes)
	for at := from; at < to; at += storeBatch {
		batch := s.client.Pipeline()
		for n := at; n < min(at+storeBatch, to); n++ {
			batch.Set(ctx, fmt.Sprintf("%s://orders:0b5e7d1c-93a4-4c6e-8f02-%012d", prefix, n), value, recordLife)
		}
		if _, err := batch.Exec(ctx); err != nil {
			return fmt.Errorf("fill store: %w", err)
		}
	}
	return nil
}

// forget removes all keys with a prefix.
func (s *store) forget(ctx context.Context, prefix string) error {
	keys := s.client.ScanType(ctx, 0, prefix+"*", storeBatch, "string").Iterator()
	batch, waiting := s.client.Pipeline(), 0
	flush := func() error {
		_, err := batch.Exec(ctx)
		waiting = 0
		return err
	}
	for keys.Next(ctx) {
		batch.Unlink(ctx, keys.Val())
		if waiting++; waiting == storeBatch {
			if err := flush(); err != nil {
				return fmt.Errorf("forget records: %w", err)
			}
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("forget records: %w", err)
	}
	if waiting == 0 {
		return nil
	}
	return flush()
}

// version is the server's, in its own words.
func (s *store) version(ctx context.Context) (string, error) {
	text, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask store for its version: %w", err)
	}
	return parseStoreVersion(text), nil
}

// parseStoreVersion reads INFO. Valkey says which Redis it is compatible with, too.
func parseStoreVersion(info string) string {
	found := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		found[name] = value
	}
	if version := found["valkey_version"]; version != "" {
		return "Valkey " + version
	}
	return "Redis " + found["redis_version"]
}
