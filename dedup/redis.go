package dedup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// redisBackend runs the protocol's script on Redis: on one server, on the one
// that Sentinel calls the primary, or on the primaries of a cluster.
type redisBackend struct {
	single   *redis.Client        // nil in a cluster
	cluster  *redis.ClusterClient // nil elsewhere
	any      redis.UniversalClient
	dialer   *dialer
	script   string // its SHA-1, by which the server knows it
	replicas int    // how many must have a success
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
	files   *tlsFiles // nil: no TLS
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
		s.files.unverified = parsed.TLSConfig.InsecureSkipVerify
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

func (b *redisBackend) run(ctx context.Context, group []*call) {
	if b.cluster == nil {
		b.runOn(ctx, b.single, group)
		return
	}
	parts, err := b.byPrimary(ctx, group)
	if err != nil {
		b.leave("")
		for _, c := range group {
			c.err = explain(err)
		}
		return
	}
	var work sync.WaitGroup
	for primary, part := range parts {
		work.Go(func() { b.runOn(ctx, primary, part) })
	}
	work.Wait()
	b.follow(ctx, group)
}

// byPrimary splits a group by the server that its keys are on. It fails for
// all or for none: when no node tells what the cluster looks like.
func (b *redisBackend) byPrimary(ctx context.Context, group []*call) (map[*redis.Client][]*call, error) {
	parts := map[*redis.Client][]*call{}
	for _, c := range group {
		primary, err := b.cluster.MasterForKey(ctx, c.op.key)
		if err != nil {
			return nil, err
		}
		parts[primary] = append(parts[primary], c)
	}
	return parts, nil
}

// runOn runs calls on one server.
func (b *redisBackend) runOn(ctx context.Context, server *redis.Client, group []*call) {
	if right := b.perform(ctx, server, b.replicas, group); right {
		return
	}
	if b.cluster == nil {
		b.leave("") // Sentinel may have named more than one
		return
	}
	b.leave(server.Options().Addr)
}

// leave gives up the connections to an address, or all for "": the server is
// gone, or not the primary any more. The next group dials anew, and asks
// Sentinel or the cluster where to.
func (b *redisBackend) leave(address string) {
	b.dialer.condemn(address)
	if b.cluster != nil {
		b.cluster.ReloadState(context.Background()) // in the background
	}
}

// wrongServer tells an error after which another connection, or another server,
// may do better: everything that is no answer, and the answer of a replica.
func wrongServer(err error) bool {
	var answered redis.Error
	return !errors.As(err, &answered) || strings.Contains(err.Error(), "READONLY ")
}

// follow sends what a node of a cluster redirected to where it belongs. A
// redirected operation has not been executed, so this is no repeat. The library
// follows: MOVED, for a slot that is elsewhere, and ASK, for a key of a slot that is on its way.
func (b *redisBackend) follow(ctx context.Context, group []*call) {
	var redirected []*call
	for _, c := range group {
		_, moved := redis.IsMovedError(c.err)
		_, asked := redis.IsAskError(c.err)
		if moved || asked {
			redirected = append(redirected, c)
		}
	}
	if len(redirected) == 0 {
		return
	}
	b.cluster.ReloadState(ctx)
	b.perform(ctx, b.cluster, 0, redirected)
	if b.replicas == 0 {
		return
	}
	for _, c := range redirected {
		if c.op.word == wordSucceed && c.err == nil {
			c.err = errMoving // which of the nodes to wait at is not known here
		}
	}
}

// errMoving is for a success that a cluster has, but perhaps on one node only.
var errMoving = errors.New("recorded while its slot moved to another node; whether DEDUP_WAIT_REPLICAS have it is to be asked again")

// executor is a client of one server or of a cluster.
type executor interface {
	Process(ctx context.Context, command redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// perform runs calls, and waits until so many replicas have the successes
// among them. It reports whether this is the right server, as far as one can
// tell.
func (b *redisBackend) perform(ctx context.Context, server executor, replicas int, group []*call) bool {
	unloaded, right := send(ctx, server, replicas, group, "EVALSHA", b.script)
	if len(unloaded) == 0 {
		return right
	}
	// The server does not have the script (a restart, a fail-over, a flush):
	// those calls did nothing and go again with the source itself, which also
	// loads it. EVAL asks for no other permission than EVALSHA.
	_, right = send(ctx, server, replicas, unloaded, "EVAL", protocolSource)
	return right
}

// send runs the calls in one pipeline, and returns those for which the server
// did not have the script.
func send(ctx context.Context, server executor, replicas int, group []*call, command, script string) (unloaded []*call, right bool) {
	commands := make([]redis.Cmder, len(group), len(group)+1)
	for i, c := range group {
		commands[i] = redis.NewStringCmd(ctx, arguments(command, script, &c.op)...)
	}
	var copies *redis.IntCmd
	if replicas > 0 && anySuccess(group) {
		// On the same connection as the writes: the server counts the replicas
		// that have what this connection wrote.
		copies = redis.NewIntCmd(ctx, "WAIT", replicas, replicaTimeout.Milliseconds())
		commands = append(commands, copies)
	}
	execute(ctx, server, commands)
	right = true
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
			right = right && !wrongServer(err)
		}
	}
	if copies != nil {
		confirm(group, replicas, int(copies.Val()), copies.Err())
	}
	return unloaded, right
}

func execute(ctx context.Context, server executor, commands []redis.Cmder) {
	if len(commands) == 1 {
		_ = server.Process(ctx, commands[0]) // the command carries the error
		return
	}
	pipeline := server.Pipeline()
	_ = pipeline.BatchProcess(ctx, commands...)
	_, _ = pipeline.Exec(ctx) // each command carries its own error
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

func (b *redisBackend) ping(ctx context.Context) error {
	if b.cluster == nil {
		return explain(b.single.Ping(ctx).Err())
	}
	return explain(b.cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
		return primary.Ping(ctx).Err()
	}))
}

// advise warns of an eviction policy under which the server may drop records.
// A server that denies the question gets no warning.
func (b *redisBackend) advise(ctx context.Context) []string {
	policy := ""
	if b.cluster == nil {
		policy = evictionPolicy(ctx, b.single)
	} else {
		var mu sync.Mutex
		_ = b.cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
			if p := evictionPolicy(ctx, primary); evicts(p) {
				mu.Lock()
				defer mu.Unlock()
				policy = p
			}
			return nil
		})
	}
	if !evicts(policy) {
		return nil
	}
	return []string{fmt.Sprintf("Redis has maxmemory-policy %s: when its memory is full it drops records, and their messages are executed again; set maxmemory-policy noeviction", policy)}
}

func evicts(policy string) bool { return policy != "" && policy != "noeviction" }

func evictionPolicy(ctx context.Context, server *redis.Client) string {
	const field = "maxmemory_policy:"
	info, err := server.Info(ctx, "memory").Result()
	if err == nil {
		for line := range strings.Lines(info) {
			if policy, ok := strings.CutPrefix(line, field); ok {
				return strings.TrimSpace(policy)
			}
		}
	}
	return server.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]
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
