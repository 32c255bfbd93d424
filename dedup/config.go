package dedup

import (
	"context"
	"fmt"
	"time"
)

// The values of DEDUP_STORE.
const (
	StoreRedis  = "redis"
	StoreMemory = "memory"
)

// Config says which store a process uses.
type Config struct {
	// Store is where claims are kept: redis, or memory (this process only, gone
	// with it: one replica, for trying it out). Default redis.
	Store string `env:"DEDUP_STORE, default=redis"`

	// OnStoreDown is what happens while the store does not answer: wait, or
	// forward (requests without a claim, flagged as of unknown outcome).
	// Default wait.
	OnStoreDown StoreDownPolicy `env:"DEDUP_ON_STORE_DOWN, default=wait"`

	// RedisURL is redis://, rediss:// (TLS) or unix://, with an optional
	// user, password and database number. Several hosts, comma-separated, are
	// the nodes of a cluster, or sentinels. Required unless Store is memory.
	RedisURL Secret `env:"REDIS_URL"`

	// RedisUsername wins over the user name in RedisURL. Default: the URL's.
	RedisUsername string `env:"REDIS_USERNAME"`

	// RedisPassword is taken verbatim, without percent-decoding, and wins over
	// the password in RedisURL. Default: the URL's.
	RedisPassword Secret `env:"REDIS_PASSWORD"`

	// Credentials, when set, is asked for user and password at each new
	// connection and wins over the fields above, for credentials that change
	// while the process runs.
	Credentials func(context.Context) (username, password string, err error) `json:"-"`

	// RedisCluster says that RedisURL names nodes of a Redis Cluster, any of
	// which tells about the others. Default false.
	RedisCluster bool `env:"REDIS_CLUSTER, default=false"`

	// RedisSentinelMaster is the name under which Sentinel knows the primary;
	// RedisURL then names sentinels, and its user, password and database are
	// the primary's. Default: none, RedisURL names the server itself.
	RedisSentinelMaster string `env:"REDIS_SENTINEL_MASTER"`

	// RedisSentinelUsername is for the sentinels themselves. Default: none.
	RedisSentinelUsername string `env:"REDIS_SENTINEL_USERNAME"`

	// RedisSentinelPassword is for the sentinels themselves, taken verbatim.
	// Default: none.
	RedisSentinelPassword Secret `env:"REDIS_SENTINEL_PASSWORD"`

	// RedisTLSCAFile holds the authorities (PEM) that a server's certificate is
	// checked against. Default: the system's.
	RedisTLSCAFile string `env:"REDIS_TLS_CA_FILE"`

	// RedisTLSCertFile holds our own certificate (PEM). Default: none.
	RedisTLSCertFile string `env:"REDIS_TLS_CERT_FILE"`

	// RedisTLSKeyFile holds its private key (PEM). Default: none.
	RedisTLSKeyFile string `env:"REDIS_TLS_KEY_FILE"`

	// RedisTLSServerName is the name that a server's certificate must be for.
	// Default: the host that is dialed.
	RedisTLSServerName string `env:"REDIS_TLS_SERVER_NAME"`

	// Memory, when set, says where StoreMemory keeps records, so that several
	// stores of a process can share them, as replicas share a server. Default:
	// each has its own.
	Memory func() *Memory `json:"-"`

	// WaitReplicas is how many replicas must have a success before it counts as
	// recorded. Default 0: the primary alone.
	WaitReplicas int `env:"DEDUP_WAIT_REPLICAS, default=0"`
}

// Validate returns every problem. Each text begins with the variable's name
// and shows no secret.
func (c *Config) Validate() []error {
	var problems []error
	if !c.OnStoreDown.known() {
		problems = append(problems, fmt.Errorf("DEDUP_ON_STORE_DOWN: %q is no policy; use wait or forward", string(c.OnStoreDown)))
	}
	switch c.Store {
	case StoreMemory:
		return problems
	case StoreRedis:
	default:
		return append(problems, fmt.Errorf("DEDUP_STORE: %q is not a store; use redis or memory", c.Store))
	}
	return append(problems, c.validateRedis()...)
}

// QueueConfig says how the messages of one queue are identified and claimed.
type QueueConfig struct {
	// Prefix begins every key. Two brokers on one Redis need two prefixes.
	// Default rabbitonce.
	Prefix string `env:"DEDUP_PREFIX, default=rabbitonce"`

	// Mode is enforce, or observe: every message is forwarded, and what would
	// have been skipped is counted. Default enforce.
	Mode Mode `env:"DEDUP_MODE, default=enforce"`

	// Consumer is the second half of an ID's identity: one message ID in two
	// queues is two pieces of work. Empty: {vhost}/{queue}, filled in by the
	// caller of this package.
	Consumer string `env:"DEDUP_CONSUMER"`

	// IDFrom lists where the ID is looked for, in order: message-id,
	// correlation-id, header:NAME, json:/POINTER, hash.
	// Default message-id,header:x-message-id.
	IDFrom Sources `env:"DEDUP_ID_FROM, default=message-id,header:x-message-id"`

	// OnMissingID is what happens to a message without an ID: deadletter,
	// hash (identify it by its content) or forward (without a claim).
	// Default deadletter.
	OnMissingID MissingPolicy `env:"DEDUP_ON_MISSING_ID, default=deadletter"`

	// OnConflict is what happens to a message whose ID was seen with another
	// payload: deadletter, or duplicate (payloads are not compared).
	// Default deadletter.
	OnConflict ConflictPolicy `env:"DEDUP_ON_CONFLICT, default=deadletter"`

	// Lease is how long a claim holds without being renewed; it is renewed
	// while a request runs, and a killed holder's work is taken over after it.
	// At least 1s. Default 30s.
	Lease time.Duration `env:"DEDUP_LEASE, default=30s"`

	// Retention is how long a record lives after its last change, and so how
	// long a duplicate is recognised. Longer than Lease. Default 48h.
	Retention time.Duration `env:"DEDUP_RETENTION, default=48h"`
}

// minLease is the shortest lease that a round trip to a store in trouble
// (see groupTimeout) does not lose as a matter of course.
const minLease = time.Second

// maxRetention keeps times within the 40 bits a record has for them, see
// codec.go.
const maxRetention = 10 * 365 * 24 * time.Hour

// Validate returns every problem. Each text begins with the variable's name.
func (c *QueueConfig) Validate() []error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if c.Prefix == "" {
		add("DEDUP_PREFIX: is empty; give a name such as rabbitonce")
	}
	for _, problem := range c.IDFrom.problems {
		add("DEDUP_ID_FROM: %s", problem)
	}
	if !c.Mode.known() {
		add("DEDUP_MODE: %q is no mode; use enforce or observe", string(c.Mode))
	}
	if !c.OnMissingID.known() {
		add("DEDUP_ON_MISSING_ID: %q is no policy; use deadletter, hash or forward", string(c.OnMissingID))
	}
	if !c.OnConflict.known() {
		add("DEDUP_ON_CONFLICT: %q is no policy; use deadletter or duplicate", string(c.OnConflict))
	}
	if c.Lease < minLease {
		add("DEDUP_LEASE: %s is too short; use %s or more", c.Lease, minLease)
	}
	switch {
	case c.Retention <= c.Lease:
		add("DEDUP_RETENTION: %s must be longer than DEDUP_LEASE (%s)", c.Retention, c.Lease)
	case c.Retention > maxRetention:
		add("DEDUP_RETENTION: %s is too long; use %s or less", c.Retention, maxRetention)
	}
	return problems
}
