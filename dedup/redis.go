package dedup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 2 * time.Second
	// replyTimeout bounds how long a group waits for its answers.
	replyTimeout = time.Second
	// replicaTimeout bounds how long a group waits for its replicas; it is part
	// of replyTimeout.
	replicaTimeout = 500 * time.Millisecond
	// bufferSize holds a full group of either direction in a few writes.
	bufferSize = 16 << 10
	// maxRedirects bounds how often an operation is sent on to another node.
	maxRedirects = 3
)

//go:embed scripts/protocol.lua
var protocolSource string

// redisNode is a client of one server; the only file that knows the library by
// name is this one.
type redisNode = redis.Client

// redisBackend runs the protocol's script on Redis: on one server, on the one
// that Sentinel calls the primary, or on the primaries of a cluster.
type redisBackend struct {
	single   *redis.Client        // nil in a cluster
	cluster  *redis.ClusterClient // nil elsewhere
	any      redis.UniversalClient
	dialer   *dialer
	script   string // its SHA-1, by which the server knows it
	replicas int    // how many must have what is to be confirmed
}

func newRedis(cfg Config) (*redisBackend, error) {
	options, err := redisOptions(cfg)
	if err != nil {
		return nil, err
	}
	return newRedisWith(cfg, options), nil
}

func newRedisWith(cfg Config, options *redisSettings) *redisBackend {
	// The library writes to standard error on its own account what it also
	// returns with each call.
	redis.SetLogger(silent{})
	b := &redisBackend{
		dialer:   newDialer(options.files),
		script:   redis.NewScript(protocolSource).Hash(),
		replicas: cfg.WaitReplicas,
	}
	options.Dialer = b.dialer.dial
	switch {
	case cfg.RedisCluster:
		cluster := options.Cluster()
		cluster.DisableRoutingPolicies = true // they would ask for COMMAND, which an ACL would have to allow
		b.cluster = redis.NewClusterClient(cluster)
		b.any = b.cluster
	case cfg.RedisSentinelMaster != "":
		b.single = redis.NewFailoverClient(options.Failover())
		b.any = b.single
	default:
		single := options.Simple()
		single.Network = options.network
		b.single = redis.NewClient(single)
		b.any = b.single
	}
	return b
}

// redisSettings are the options of every kind of client, and what the library
// has no common place for.
type redisSettings struct {
	redis.UniversalOptions
	network string
	files   *TLSFiles // nil: no TLS
}

// checkRedisOptions says whether the library understands the URL. Its errors
// may quote the URL: do not show them.
func checkRedisOptions(text string) error {
	_, err := redis.ParseURL(text)
	return err
}

func redisOptions(cfg Config) (*redisSettings, error) {
	first, hosts := splitHosts(cfg.RedisURL.Reveal())
	parsed, err := redis.ParseURL(first)
	if err != nil {
		return nil, errors.New("REDIS_URL: cannot be used") // Validate says why
	}
	s := &redisSettings{network: parsed.Network, files: cfg.tlsFiles()}
	switch {
	case parsed.TLSConfig == nil:
		s.files = nil
	default:
		s.files.Unverified = parsed.TLSConfig.InsecureSkipVerify
	}
	usual := redisPort
	if cfg.RedisSentinelMaster != "" {
		usual = sentinelPort
	}
	s.Addrs = []string{parsed.Addr} // of a socket
	for i, host := range hosts {
		s.Addrs = append(s.Addrs[:i], withPort(host, usual))
	}
	s.DB, s.Username, s.Password = parsed.DB, parsed.Username, parsed.Password
	if cfg.RedisUsername != "" {
		s.Username = cfg.RedisUsername
	}
	if cfg.RedisPassword != "" {
		s.Password = cfg.RedisPassword.Reveal()
	}
	s.CredentialsProviderContext = cfg.Credentials
	s.MasterName = cfg.RedisSentinelMaster
	s.SentinelUsername, s.SentinelPassword = cfg.RedisSentinelUsername, cfg.RedisSentinelPassword.Reveal()

	// No hidden repeats: the caller decides, with the same token.
	s.MaxRetries = -1
	s.DialerRetries = 1
	s.MaxRedirects = maxRedirects
	s.ContextTimeoutEnabled = true
	s.DialTimeout = dialTimeout
	s.ReadTimeout = replyTimeout
	s.WriteTimeout = replyTimeout
	// One connection for each group in flight and one for pings and lookups;
	// in a cluster, to each node.
	s.PoolSize = maxInFlight + 1
	s.PipelinePoolSize = -1
	s.PoolTimeout = replyTimeout
	s.ReadBufferSize = bufferSize
	s.WriteBufferSize = bufferSize
	// Plain RESP2 and no handshakes beyond the login: nothing here needs
	// more, and every one is a command that an ACL would have to allow.
	s.Protocol = 2
	s.DisableIdentity = true
	s.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return s, nil
}

// wrongServer tells an error after which another connection, or another server,
// may do better: everything that is no answer, and the answer of a replica.
func wrongServer(err error) bool {
	var answered redis.Error
	return !errors.As(err, &answered) || strings.Contains(err.Error(), "READONLY ")
}

// isRedirect tells the answers of a cluster's node that sends an operation on,
// and has not executed it.
func isRedirect(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, asked := redis.IsAskError(err)
	return moved || asked
}

// executor is a client of one server or of a cluster.
type executor interface {
	Process(ctx context.Context, command redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// perform runs calls, and waits until so many replicas have those that are to
// be confirmed. It reports whether this is the right server, as far as one can
// tell.
func (b *redisBackend) perform(ctx context.Context, server executor, replicas int, group []*call) bool {
	unloaded, right := b.send(ctx, server, replicas, group, "EVALSHA", b.script)
	if len(unloaded) == 0 {
		return right
	}
	// The server does not have the script (a restart, a fail-over, a flush):
	// those calls did nothing and go again with the source itself, which also
	// loads it. EVAL asks for no other permission than EVALSHA.
	_, right = b.send(ctx, server, replicas, unloaded, "EVAL", protocolSource)
	return right
}

// send runs the calls in one round trip, and returns those for which the server
// did not have the script.
func (b *redisBackend) send(ctx context.Context, server executor, replicas int, group []*call, command, script string) (unloaded []*call, right bool) {
	parts := b.parts(group)
	commands := make([]redis.Cmder, len(parts), len(parts)+1)
	for i, part := range parts {
		commands[i] = redis.NewSliceCmd(ctx, arguments(command, script, part)...)
	}
	var copies *redis.IntCmd
	if replicas > 0 && anyToConfirm(group) {
		// On the same connection as the writes: the server counts the replicas
		// that have what this connection wrote.
		copies = redis.NewIntCmd(ctx, "WAIT", replicas, replicaTimeout.Milliseconds())
		commands = append(commands, copies)
	}
	execute(ctx, server, commands)
	right = true
	for i, part := range parts {
		answers, err := commands[i].(*redis.SliceCmd).Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			unloaded = append(unloaded, part...)
		}
		for j, c := range part {
			failed := err
			if err == nil {
				c.answer, failed = readAnswer(answers, j)
			}
			if c.err = explain(failed); failed != nil {
				right = right && !wrongServer(failed)
			}
		}
	}
	if copies != nil {
		confirm(group, replicas, int(copies.Val()), copies.Err())
	}
	return unloaded, right
}

// parts are the calls of each command: all in one, which is the cheapest for both sides, but in a cluster, where the keys of a
// command have to be of one slot.
func (b *redisBackend) parts(group []*call) [][]*call {
	if b.cluster == nil {
		return [][]*call{group}
	}
	parts := make([][]*call, len(group))
	for i := range group {
		parts[i] = group[i : i+1]
	}
	return parts
}

// readAnswer reads the answer to the i-th operation of a command.
func readAnswer(answers []any, i int) (answer, error) {
	if i >= len(answers) {
		return answer{}, errCorrupt
	}
	text, _ := answers[i].(string)
	if failed, ok := strings.CutPrefix(text, "!"); ok {
		return answer{}, scriptError(failed)
	}
	return parseAnswer(text)
}

// scriptError is the server's error in one operation of a command.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError marks what the server said, as the library's own errors are.
func (scriptError) RedisError() {}

func execute(ctx context.Context, server executor, commands []redis.Cmder) {
	if len(commands) == 1 {
		_ = server.Process(ctx, commands[0]) // the command carries the error
		return
	}
	pipeline := server.Pipeline()
	_ = pipeline.BatchProcess(ctx, commands...)
	_, err := pipeline.Exec(ctx)
	stamp(commands, err)
}

// stamp gives a pipeline's error to its commands, which otherwise carry their own. The library does not, when the
// server refused to set the connection up, such as a login: nothing was sent then, and an empty answer is no answer.
func stamp(commands []redis.Cmder, err error) {
	for _, c := range commands {
		if err == nil || c.Err() != nil {
			return
		}
	}
	for _, c := range commands {
		c.SetErr(err)
	}
}

func (b *redisBackend) get(ctx context.Context, key string) (string, bool, error) {
	value, err := b.any.Get(ctx, key).Result()
	switch {
	case err == redis.Nil: // not errors.Is: Sentinel's own nil may be wrapped in an error
		return "", false, nil
	case err != nil:
		return "", false, explain(err)
	}
	return value, true, nil
}

// look asks one server, so that clock and record belong together. A user who may not ask for the expiry is told the
// rest.
func (b *redisBackend) look(ctx context.Context, key string) (sight, error) {
	server := b.single
	if b.cluster != nil {
		var err error
		if server, err = b.cluster.MasterForKey(ctx, key); err != nil {
			return sight{}, explain(err)
		}
	}
	pipeline := server.Pipeline()
	value, left, clock := pipeline.Get(ctx, key), pipeline.PTTL(ctx, key), pipeline.Time(ctx)
	_, err := pipeline.Exec(ctx)
	stamp([]redis.Cmder{value, left, clock}, err)
	if err := clock.Err(); err != nil {
		return sight{}, explain(err)
	}
	if isRedirect(value.Err()) { // the slot moves: the cluster's client follows
		value, left = b.cluster.Get(ctx, key), b.cluster.PTTL(ctx, key)
	}
	seen := sight{now: clock.Val().UnixMilli()}
	switch err := value.Err(); {
	case err == redis.Nil: // not errors.Is, see get
		return seen, nil
	case err != nil:
		return sight{}, explain(err)
	}
	seen.value, seen.found = value.Val(), true
	if left.Err() == nil {
		seen.left = max(0, left.Val().Milliseconds())
	}
	return seen, nil
}

func (b *redisBackend) ping(ctx context.Context) error {
	if b.cluster == nil {
		return explain(b.single.Ping(ctx).Err())
	}
	return explain(b.cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
		return primary.Ping(ctx).Err()
	}))
}

func (b *redisBackend) close() error {
	if err := b.any.Close(); err != nil {
		return fmt.Errorf("close redis client: %w", err)
	}
	return nil
}

// silent is a logger for the library that drops everything.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
