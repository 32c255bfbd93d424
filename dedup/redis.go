package dedup

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 2 * time.Second
	// replyTimeout bounds how long a group waits for its answers.
	replyTimeout = time.Second
	// bufferSize holds a full group of either direction in a few writes.
	bufferSize = 16 << 10
)

//go:embed scripts/protocol.lua
var protocolSource string

// redisBackend runs the protocol's script on a Redis server.
type redisBackend struct {
	client *redis.Client
	script *redis.Script
}

func newRedis(cfg Config) (*redisBackend, error) {
	options, err := redisOptions(cfg)
	if err != nil {
		return nil, err
	}
	return newRedisWith(options), nil
}

func newRedisWith(options *redis.Options) *redisBackend {
	// The library writes to standard error on its own account what it also
	// returns with each call.
	redis.SetLogger(silent{})
	return &redisBackend{client: redis.NewClient(options), script: redis.NewScript(protocolSource)}
}

// checkRedisOptions says whether the library understands the URL. Its errors
// may quote the URL: do not show them.
func checkRedisOptions(text string) error {
	_, err := redis.ParseURL(text)
	return err
}

func redisOptions(cfg Config) (*redis.Options, error) {
	o, err := redis.ParseURL(cfg.RedisURL.Reveal())
	if err != nil {
		return nil, errors.New("REDIS_URL: cannot be used") // Validate says why
	}
	if cfg.RedisUsername != "" {
		o.Username = cfg.RedisUsername
	}
	if cfg.RedisPassword != "" {
		o.Password = cfg.RedisPassword.Reveal()
	}
	// No hidden repeats: the caller decides, with the same token.
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout = dialTimeout
	o.ReadTimeout = replyTimeout
	o.WriteTimeout = replyTimeout
	// One connection for each group in flight and one for pings and lookups.
	o.PoolSize = maxInFlight + 1
	o.PipelinePoolSize = -1
	o.PoolTimeout = replyTimeout
	o.ReadBufferSize = bufferSize
	o.WriteBufferSize = bufferSize
	// Plain RESP2 and no handshakes beyond the login: nothing here needs
	// more, and every one is a command that an ACL would have to allow.
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

func (b *redisBackend) run(ctx context.Context, group []*call) {
	unloaded := b.send(ctx, group, "EVALSHA", b.script.Hash())
	if len(unloaded) == 0 {
		return
	}
	// The server does not have the script (a restart, a fail-over, a flush):
	// those calls did nothing and go again with the source itself, which also
	// loads it. EVAL asks for no other permission than EVALSHA.
	b.send(ctx, unloaded, "EVAL", protocolSource)
}

// send runs the calls in one pipeline and returns those for which the server
// did not have the script.
func (b *redisBackend) send(ctx context.Context, group []*call, command, script string) (unloaded []*call) {
	commands := make([]redis.Cmder, len(group))
	for i, c := range group {
		commands[i] = redis.NewStringCmd(ctx, arguments(command, script, &c.op)...)
	}
	if len(commands) == 1 {
		_ = b.client.Process(ctx, commands[0]) // the command carries the error
	} else {
		pipeline := b.client.Pipeline()
		_ = pipeline.BatchProcess(ctx, commands...)
		_, _ = pipeline.Exec(ctx) // each command carries its own error
	}
	for i, c := range group {
		text, err := commands[i].(*redis.StringCmd).Result()
		switch {
		case err == nil:
			c.answer, c.err = parseAnswer(text)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			c.err = err
			unloaded = append(unloaded, c)
		default:
			c.err = explain(err)
		}
	}
	return unloaded
}

// arguments returns a whole command: one key, and ARGV as
// scripts/protocol.lua lists it.
func arguments(command, script string, op *operation) []any {
	args := append(make([]any, 0, 12), command, script, 1, op.key, string(op.word))
	switch op.word {
	case wordClaim:
		var id string
		if op.hasDeadID {
			id = string(op.deadID[:])
		}
		return append(args, op.token[:], op.fingerprint.bytes(), flag(op.compare), op.lease, op.deadline, op.retention, id)
	case wordRenew:
		return append(args, op.token[:], op.lease, op.retention)
	case wordSucceed:
		return append(args, op.status, op.fingerprint.bytes(), op.retention)
	case wordWait:
		return append(args, op.token[:], op.delay, op.class.String(), op.retention)
	case wordBury:
		return append(args, op.token[:], uint8(op.reason), op.deadID[:], flag(op.unknown), op.retention)
	case wordRelease:
		return append(args, op.token[:], op.retention)
	default: // wordUndead
		return append(args, op.deadID[:])
	}
}

func (f Fingerprint) bytes() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(f))
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func (b *redisBackend) get(ctx context.Context, key string) (string, bool, error) {
	value, err := b.client.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", false, nil
	case err != nil:
		return "", false, explain(err)
	}
	return value, true, nil
}

func (b *redisBackend) ping(ctx context.Context) error {
	return explain(b.client.Ping(ctx).Err())
}

// advise warns of an eviction policy under which the server may drop records.
// A server that denies the question gets no warning.
func (b *redisBackend) advise(ctx context.Context) []string {
	policy := b.evictionPolicy(ctx)
	if policy == "" || policy == "noeviction" {
		return nil
	}
	return []string{fmt.Sprintf("Redis has maxmemory-policy %s: when its memory is full it drops records, and their messages are executed again; set maxmemory-policy noeviction", policy)}
}

func (b *redisBackend) evictionPolicy(ctx context.Context) string {
	const field = "maxmemory_policy:"
	info, err := b.client.Info(ctx, "memory").Result()
	if err == nil {
		for line := range strings.Lines(info) {
			if policy, ok := strings.CutPrefix(line, field); ok {
				return strings.TrimSpace(policy)
			}
		}
	}
	return b.client.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]
}

func (b *redisBackend) close() error {
	if err := b.client.Close(); err != nil {
		return fmt.Errorf("close redis client: %w", err)
	}
	return nil
}

// explain adds what to do about an error, where that is known.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if advice := remedy(err.Error()); advice != "" {
		return fmt.Errorf("%w (%s)", err, advice)
	}
	// Errors that say little to somebody who does not know what is behind them.
	var timeout net.Error
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("redis closed the connection: %w", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("redis did not answer in time: %w", err)
	}
	return err
}

// silent is a logger for the library that drops everything.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
