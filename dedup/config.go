package dedup

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
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
	// user, password and database number. Required unless Store is memory.
	RedisURL Secret `env:"REDIS_URL"`

	// RedisUsername wins over the user name in RedisURL. Default: the URL's.
	RedisUsername string `env:"REDIS_USERNAME"`

	// RedisPassword is taken verbatim, without percent-decoding, and wins over
	// the password in RedisURL. Default: the URL's.
	RedisPassword Secret `env:"REDIS_PASSWORD"`
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
	if err := checkRedisURL(c.RedisURL.Reveal()); err != nil {
		problems = append(problems, fmt.Errorf("REDIS_URL: %w", err))
	}
	return problems
}

// checkRedisURL names what is wrong without showing any part of the URL: a
// password with unescaped characters may have ended up in any of them, and
// the errors of net/url quote their input.
func checkRedisURL(text string) error {
	const form = "redis://host:6379/0, rediss:// for TLS, or unix:///path/to.sock"
	if text == "" {
		return errors.New("is required unless DEDUP_STORE=memory; write " + form)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is not a URL; write " + form +
			", and give a password with special characters in REDIS_PASSWORD")
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return errors.New("has no scheme that is known here; write " + form)
	case u.Scheme == "unix" && u.Path == "":
		return errors.New("names no socket; write unix:///path/to.sock")
	case u.Fragment != "" || strings.Contains(u.Host, "@"):
		return errors.New("holds an unescaped # or @; percent-encode the password or give it in REDIS_PASSWORD")
	case strings.Contains(u.Host, ","):
		return errors.New("names several hosts; this version speaks to one")
	case u.Scheme != "unix" && u.Host == "":
		return errors.New("names no host; write " + form)
	}
	if err := checkRedisOptions(text); err != nil {
		return errors.New("has a database or an option that is not known here; write " + form)
	}
	return nil
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

// maxRetention keeps times within the 48 bits a record has for them.
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
