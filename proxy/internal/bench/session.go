package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"rabbitonce/proxy/internal/testkit"
)

// session runs scenarios one after the other on the same servers. It is used by one goroutine.
type session struct {
	options
	out      io.Writer
	servers  *servers
	client   *testkit.Client
	store    *store
	self     string // this executable, which is the yardsticks too
	machine  string
	prefix   string // of queues and keys: nobody else has it
	runs     int    // so far; gives each its own queue
	preload  int    // records that were put into the store
	failed   int    // runs that failed
	binaryMB float64
}

// openSession has the servers ready. It prints what they are.
func openSession(ctx context.Context, o options, out io.Writer) (*session, error) {
	s := &session{options: o, out: out, prefix: "bench-" + randomHex(4)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	var err error
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.servers, err = startServers(ctx, s.options, s.out); err != nil {
		return err
	}
	info, err := os.Stat(s.servers.program)
	if err != nil {
		return fmt.Errorf("find rabbitonce: %w", err)
	}
	s.binaryMB = float64(info.Size()) / (1 << 20)
	if s.client, err = testkit.Dial(s.servers.brokerURL); err != nil {
		return err
	}
	if s.store, err = openStore(s.servers.redisURL); err != nil {
		return err
	}
	version := "given as a binary"
	if s.program == "" {
		version = revision(ctx)
	}
	if s.machine, err = describeMachine(ctx, s.servers.brokerURL, s.store, version); err != nil {
		return err
	}
	s.say("%s", s.machine)
	return nil
}

func (s *session) close() error {
	var err error
	if s.client != nil {
		err = s.client.Close()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.close())
	}
	if s.servers != nil {
		err = errors.Join(err, s.servers.close())
	}
	return err
}

func (s *session) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// randomHex returns n random bytes as text.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
