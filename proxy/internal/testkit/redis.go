package testkit

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// redisStart bounds the start of a server.
const redisStart = 30 * time.Second

// RedisOptions are for StartRedis. The zero value is a server that has written each change to disk before it answers,
// so that Kill loses nothing.
type RedisOptions struct {
	Root     string                           // a folder made by .ci/servers; empty: what RABBITONCE_TEST_STORE_ROOT says, or this machine
	Program  string                           // redis-server or valkey-server; empty: what RABBITONCE_TEST_STORE says, or redis-server
	Volatile bool                             // keep data in memory only
	Args     []string                         // more arguments, such as --maxmemory 10mb
	Logf     func(format string, args ...any) // progress; nil is silent
}

// Redis is a private Redis server. Its data and address stay the same over Stop, Kill and Start.
// Its methods are not for concurrent use.
type Redis struct {
	URL     string // redis://127.0.0.1:PORT/0
	Addr    string // 127.0.0.1:PORT, for a FaultProxy
	LogPath string

	root    root
	program string // its path in the root
	dir     string
	args    []string
	port    port
	process *process
	logf    func(format string, args ...any)
}

// StartRedis returns a server that answers.
func StartRedis(ctx context.Context, options RedisOptions) (*Redis, error) {
	r := &Redis{logf: options.Logf}
	if r.logf == nil {
		r.logf = func(string, ...any) {}
	}
	if err := r.prepare(options); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis: %w", err), r.Close())
	}
	if err := r.Start(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Redis) prepare(options RedisOptions) error {
	if err := r.find(options); err != nil {
		return fmt.Errorf("find Redis (install it with .ci/install): %w", err)
	}
	var err error
	if r.port, err = reservePort(); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "rabbitonce-redis-"); err != nil {
		return err
	}
	r.Addr = r.port.address()
	r.URL = r.URLVia(r.Addr)
	r.LogPath = filepath.Join(r.dir, "redis.log")
	durable := "yes"
	if options.Volatile {
		durable = "no"
	}
	r.args = append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port.number), "--dir", r.dir, "--daemonize", "no",
		"--save", "", "--appendonly", durable, "--appendfsync", "always",
	}, options.Args...)
	return nil
}

func (r *Redis) find(options RedisOptions) error {
	var err error
	if r.root, err = newRoot(options.Root, storeRootVariable); err != nil {
		return err
	}
	program := cmp.Or(options.Program, os.Getenv(storeProgramVariable), "redis-server")
	r.program, err = r.root.lookUp(program)
	return err
}

// Start runs the server again after Stop or Kill, and returns when it answers.
func (r *Redis) Start(ctx context.Context) error {
	if r.process != nil && r.process.running() {
		return errors.New("start redis: it is running")
	}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	log, err := openLog(r.LogPath)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	defer log.Close()
	r.logf("starting Redis on %s", r.Addr)
	env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8"}
	path, args := r.root.wrap(r.program, r.args...)
	r.process, err = command{name: filepath.Base(r.program), path: path, args: args, env: env, dir: r.dir, out: log}.start()
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	if err := r.process.await(ctx, r.ready); err != nil {
		return withTail(errors.Join(fmt.Errorf("start redis: %w", err), r.process.kill()), r.LogPath)
	}
	r.logf("Redis is ready on %s", r.Addr)
	return nil
}

// ready asks for a PONG; -LOADING is not one, while -NOAUTH comes from a server that is up.
func (r *Redis) ready() error {
	connection, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(time.Second))
	if _, err := connection.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("redis says %q", strings.TrimSpace(answer))
	}
	return nil
}

// Version is the server's version, in its own words. A server that wants a password does not tell.
func (r *Redis) Version() (string, error) {
	connection, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", fmt.Errorf("ask store for its version: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := connection.Write([]byte("INFO server\r\n")); err != nil {
		return "", fmt.Errorf("ask store for its version: %w", err)
	}
	// Valkey says server_name:valkey and valkey_version, and redis_version for what it is compatible with.
	lines := bufio.NewScanner(connection)
	found := map[string]string{}
	for lines.Scan() && found["executable"] == "" { // one of the last lines
		if strings.HasPrefix(lines.Text(), "-") {
			return "", fmt.Errorf("ask store for its version: %s", lines.Text())
		}
		name, value, _ := strings.Cut(lines.Text(), ":")
		found[name] = value
	}
	if version := found["valkey_version"]; version != "" {
		return "Valkey " + version, nil
	}
	if version := found["redis_version"]; version != "" {
		return "Redis " + version, nil
	}
	return "", errors.Join(errors.New("ask store for its version: it does not tell"), lines.Err())
}

// Stop ends the server in good order.
func (r *Redis) Stop(ctx context.Context) error {
	if r.process == nil {
		return nil
	}
	return r.process.stop(ctx)
}

// Kill ends the server with SIGKILL.
func (r *Redis) Kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.kill()
}

// Pause stops the server without ending it: connections stay open and nobody answers.
func (r *Redis) Pause() error { return r.process.signalAll(syscall.SIGSTOP) }

// Resume undoes Pause.
func (r *Redis) Resume() error { return r.process.signalAll(syscall.SIGCONT) }

// URLVia is the server's URL with another address, such as a FaultProxy's.
func (r *Redis) URLVia(addr string) string { return "redis://" + addr + "/0" }

// Close kills the server and removes all that belongs to it.
func (r *Redis) Close() error {
	err := r.Kill()
	r.port.release()
	if r.dir != "" {
		err = errors.Join(err, os.RemoveAll(r.dir))
	}
	return err
}
