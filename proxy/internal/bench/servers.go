package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"rabbitonce/proxy/internal/testkit"
)

// servers are the broker and the store, given or throwaway, and the program.
type servers struct {
	brokerURL, redisURL string
	program             string

	broker *testkit.Broker // nil when given
	redis  *testkit.Redis  // nil when given
	build  string          // folder of the built program; "" when given
}

// startServers starts what is not given, and builds the program meanwhile.
func startServers(ctx context.Context, given options, out io.Writer) (*servers, error) {
	s := &servers{brokerURL: given.brokerURL, redisURL: given.redisURL, program: given.program}
	_, _ = fmt.Fprintln(out, "preparing RabbitMQ, Redis and rabbitonce ...")
	var work sync.WaitGroup
	var brokerErr, redisErr, buildErr error
	if s.brokerURL == "" {
		work.Go(func() { brokerErr = s.startBroker(ctx) })
	}
	if s.redisURL == "" {
		work.Go(func() { redisErr = s.startRedis(ctx) })
	}
	if s.program == "" {
		work.Go(func() { buildErr = s.buildProgram(ctx) })
	}
	work.Wait()
	if err := errors.Join(brokerErr, redisErr, buildErr); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *servers) startBroker(ctx context.Context) error {
	broker, err := testkit.StartBroker(ctx, testkit.BrokerOptions{})
	if err != nil {
		return err
	}
	s.broker, s.brokerURL = broker, broker.URL
	return nil
}

// startRedis starts one as docs/stores.md advises: with a file that is written every second. That file is not rewritten
// in the middle of a run.
func (s *servers) startRedis(ctx context.Context) error {
	args := []string{"--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"}
	redis, err := testkit.StartRedis(ctx, testkit.RedisOptions{Args: args})
	if err != nil {
		return err
	}
	s.redis, s.redisURL = redis, redis.URL
	return nil
}

// buildProgram compiles rabbitonce as it is released.
func (s *servers) buildProgram(ctx context.Context) error {
	root, err := testkit.ModuleRoot(ctx)
	if err != nil {
		return fmt.Errorf("build rabbitonce: %w", err)
	}
	if s.build, err = os.MkdirTemp("", "rabbitonce-bench-"); err != nil {
		return fmt.Errorf("build rabbitonce: %w", err)
	}
	s.program = filepath.Join(s.build, "rabbitonce")
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", s.program, ".")
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("build rabbitonce: %w:\n%s", err, text)
	}
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
	if s.build != "" {
		err = errors.Join(err, os.RemoveAll(s.build))
	}
	return err
}
