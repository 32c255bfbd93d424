package dedup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a throwaway redis-server on a loopback port.
type redisServer struct {
	address string
	dir     string
	args    []string
	process *exec.Cmd
	output  bytes.Buffer
}

// startRedis starts a server and returns when it answers.
func startRedis(parent string, args ...string) (*redisServer, error) {
	dir, err := os.MkdirTemp(parent, "redis")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &redisServer{address: net.JoinHostPort("127.0.0.1", port), dir: dir}
	s.args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--unixsocket", filepath.Join(dir, "redis.sock"),
	}, args...)
	return s, s.start()
}

// serverCommand runs the server of this test run: this machine's redis-server, or what make matrix chooses by two variables.
// A root is a folder made by .ci/servers; its enter becomes the program that it is given.
func serverCommand(args ...string) *exec.Cmd {
	program := cmp.Or(os.Getenv("RABBITONCE_TEST_STORE"), "redis-server")
	if root := os.Getenv("RABBITONCE_TEST_STORE_ROOT"); root != "" {
		return exec.Command(filepath.Join(root, "enter"), append([]string{program}, args...)...)
	}
	return exec.Command(program, args...)
}

func (s *redisServer) start() error {
	s.process = serverCommand(s.args...)
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	// A test binary that is killed takes its server along.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if s.answers() {
			return nil
		}
	}
	_ = s.stop()
	return fmt.Errorf("redis-server does not answer: %s", s.output.String())
}

// port returns the port that the server listens on.
func (s *redisServer) port() string {
	_, port, _ := net.SplitHostPort(s.address)
	return port
}

// answers waits a moment for any answer; an error such as NOAUTH is one.
func (s *redisServer) answers() bool {
	connection, err := net.DialTimeout("tcp", s.address, 100*time.Millisecond)
	if err != nil {
		<-time.After(10 * time.Millisecond) // nothing else tells when it listens
		return false
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(time.Second))
	if _, err := connection.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, err := connection.Read(make([]byte, 64))
	return err == nil && n > 0
}

// kill ends the server as a crash does. It may be called more than once.
func (s *redisServer) kill() error {
	switch err := s.process.Process.Kill(); {
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case err != nil:
		return err
	}
	var exit *exec.ExitError
	if err := s.process.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

func (s *redisServer) stop() error {
	return errors.Join(s.kill(), os.RemoveAll(s.dir))
}

func (s *redisServer) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.address, DisableIdentity: true})
}

func (s *redisServer) config() Config {
	return Config{Store: StoreRedis, RedisURL: Secret("redis://" + s.address)}
}

// newServer starts a server for one test.
func newServer(t *testing.T, args ...string) *redisServer {
	t.Helper()
	s, err := startRedis(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newClient returns a plain client, to look behind the store's back.
func newClient(t *testing.T, s *redisServer) *redis.Client {
	t.Helper()
	client := s.client()
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// openStore returns a store that is closed with the test. It does not run, so
// no lease is renewed behind the test's back.
func openStore(t *testing.T, cfg Config, opts ...Option) *Store {
	t.Helper()
	if problems := cfg.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	s, err := New(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs the store until the test ends.
func run(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// testKey returns a key that no other test uses.
func testKey(t *testing.T) string {
	return Key("test", strings.ReplaceAll(t.Name(), "/", "."), ID{Value: NewDeadID()})
}
