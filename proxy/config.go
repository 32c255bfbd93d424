package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// Config is what one process needs. Load fills it; every field's comment is the meaning, docs/configuration.md
// the same at length, and a test holds the two in step.
type Config struct {
	BrokerConfig

	// QueueNames are the queues to consume, comma-separated. Required.
	QueueNames Names `env:"QUEUES"`
	// HealthAddr is where /livez, /startupz, /readyz, /status and /metrics are served; read-only, no payloads.
	HealthAddr string `env:"HEALTH_ADDR, default=:8085"`
	// ShutdownGrace bounds the time between SIGTERM and exit.
	ShutdownGrace time.Duration `env:"SHUTDOWN_GRACE, default=25s"`
	// LogLevel is debug, info, warn or error.
	LogLevel LogLevel `env:"LOG_LEVEL, default=info"`
	// LogFormat is json or text.
	LogFormat LogFormat `env:"LOG_FORMAT, default=json"`

	Dedup  dedup.Config
	Queues []QueueConfig

	// Version is the program's version, for the broker's connection list and build_info.
	Version string
	// Warnings are what Load noticed and a person should read, for the log.
	Warnings []string

	reload       func() (*Config, error)
	reloadBroker func() (BrokerConfig, error)
	dialBroker   dialBroker // nil: by the network
}

// QueueConfig is one queue's settings. Each may be given for one queue alone as QUEUE_<NAME>_<SETTING>.
type QueueConfig struct {
	Name string
	// Prefetch is how many deliveries the broker may have outstanding here. 0 = 4 x FORWARD_CONCURRENCY; it is lowered
	// until Prefetch / Concurrency x Timeout fits into 15 minutes, half of the broker's usual acknowledgement timeout.
	Prefetch int `env:"PREFETCH, default=0"`
	// DeadLetterMode is queue: dead letters are published to DeadLetterQueue; or reject: they go to the source queue's
	// own dead-letter exchange.
	DeadLetterMode DeadLetterMode `env:"DEADLETTER_MODE, default=queue"`
	// DeadLetterQueue is where dead letters go; {queue} is the source queue's name.
	DeadLetterQueue string `env:"DEADLETTER_QUEUE, default={queue}.dead"`
	// Ordering is none; queue: strict order, one message at a time; or key:SOURCE: one at a time for each key, SOURCE
	// being a place as in DEDUP_ID_FROM.
	Ordering Ordering `env:"ORDERING, default=none"`

	// Body is what of a message is sent as the body of the request: raw is all of it, json:/POINTER one value of its JSON,
	// byte for byte.
	Body BodySource `env:"FORWARD_BODY, default=raw"`
	// BrakeAfter is how many messages in a row may end otherwise than done before the queue goes on with one at a time,
	// with growing pauses. 0 never does.
	BrakeAfter int `env:"FORWARD_BRAKE_AFTER, default=20"`

	Retry   RetryConfig
	Dedup   dedup.QueueConfig
	Forward forward.Config
}

// RetryConfig says when a message that did not end done is tried again.
type RetryConfig struct {
	// Backoff is the ladder of pauses, jittered by a fifth; the last step repeats.
	Backoff Ladder `env:"RETRY_BACKOFF, default=1s,5s,30s,2m,10m"`
	// MaxAttempts is how many counted attempts a message has; deferred ones do not count.
	MaxAttempts int `env:"RETRY_MAX_ATTEMPTS, default=6"`
	// MaxAge ends the retries of a message this long after its ID was first claimed.
	MaxAge time.Duration `env:"RETRY_MAX_AGE, default=24h"`
	// Hold is the longest wait in the process, unacknowledged; longer ones go through wait queues. Deliveries that
	// wait for an unreachable service go back to the queue after it, for other replicas.
	Hold time.Duration `env:"RETRY_HOLD, default=5s"`
}

// Load reads the configuration from environ (as os.Environ gives it). The error names every problem, one a line,
// each starting with its variable; it holds no secret.
func Load(environ []string, version string) (*Config, error) {
	cfg, problems := load(environ)
	if len(problems) > 0 {
		return nil, ConfigError{Problems: problems}
	}
	cfg.Version = version
	cfg.reload = func() (*Config, error) { return Load(environ, version) }
	cfg.reloadBroker = func() (BrokerConfig, error) { return loadBroker(environ) }
	return cfg, nil
}

// ConfigError lists every mistake of a configuration.
type ConfigError struct{ Problems []string }

func (e ConfigError) Error() string {
	return fmt.Sprintf("configuration: %d problem(s)\n  %s", len(e.Problems), strings.Join(e.Problems, "\n  "))
}

func load(environ []string) (*Config, []string) {
	env := newEnvironment(environ)
	cfg := &Config{}
	env.decode(cfg)
	env.add(cfg.BrokerConfig.Validate())
	cfg.Warnings = append(cfg.Warnings, cfg.BrokerConfig.warnings()...)
	vhost := cfg.vhost()
	if len(cfg.QueueNames) == 0 {
		env.problem("QUEUES", "is required: the queues to consume, comma-separated")
		loadQueue(env, cfg, "queue", "", vhost) // what is wrong for any queue is said now
	}
	if cfg.ShutdownGrace < time.Second {
		env.problem("SHUTDOWN_GRACE", "%v is too short: at least 1s", cfg.ShutdownGrace)
	}
	env.add(cfg.Dedup.Validate())
	prefixes := map[string]string{}
	for _, name := range cfg.QueueNames {
		prefix := queuePrefix(name)
		if other, taken := prefixes[prefix]; taken {
			env.problem("QUEUES", "%q and %q both read their settings from %s*: rename one", other, name, prefix)
		}
		prefixes[prefix] = name
		cfg.Queues = append(cfg.Queues, loadQueue(env, cfg, name, prefix, vhost))
	}
	env.checkConsumers(cfg)
	env.checkDeadLetterCircle(cfg)
	cfg.warnOfShortGrace()
	warnings, unsupported := strayVariables(env.vars, prefixes)
	cfg.Warnings = append(cfg.Warnings, warnings...)
	return cfg, append(env.problems, unsupported...)
}

// loadQueue reads one queue's settings, its own before the common ones.
func loadQueue(env *environment, cfg *Config, name, prefix, vhost string) QueueConfig {
	q := QueueConfig{Name: name}
	env.prefix = prefix
	defer func() { env.prefix = "" }()
	env.decode(&q)
	env.add(q.Dedup.Validate())
	env.add(q.Forward.Validate())
	if len(q.Forward.Validate()) == 0 {
		env.checkTarget(q.Forward, name)
	}
	env.add(q.validate())
	if q.Dedup.Consumer == "" {
		q.Dedup.Consumer = defaultConsumer(vhost, name)
	}
	q.DeadLetterQueue = strings.ReplaceAll(q.DeadLetterQueue, "{queue}", name)
	if q.DeadLetterMode == DeadLetterByReject {
		q.DeadLetterQueue = ""
		cfg.Warnings = append(cfg.Warnings, q.rejectAdvice())
	}
	if len(q.DeadLetterQueue) > maxQueueName {
		env.problem("DEADLETTER_QUEUE", "%q is longer than the %d bytes that a queue name may have: set a shorter one", q.DeadLetterQueue, maxQueueName)
	}
	for _, step := range waitSteps(q.Retry.Backoff, q.Retry.Hold) {
		if len(waitQueue(name, step)) > maxQueueName {
			env.problem("QUEUES", "%q is too long: its wait queue %s.wait.%s would have more than %d bytes", name, "{queue}", shortDuration(step), maxQueueName)
			break
		}
	}
	if q.DeadLetterQueue == name {
		env.problem("DEADLETTER_QUEUE", "is the source queue %q itself: a dead letter would be consumed again", name)
	}
	if q.Ordering.kept() {
		cfg.Warnings = append(cfg.Warnings, q.orderingAdvice())
	}
	if q.Ordering.strict() {
		q.Forward.Concurrency = min(q.Forward.Concurrency, 1)
	}
	if note := q.fitPrefetch(); note != "" {
		cfg.Warnings = append(cfg.Warnings, note)
	}
	return q
}

// warnOfShortGrace says once, for all queues, that a POST can outlast the shutdown.
func (c *Config) warnOfShortGrace() {
	var longest time.Duration
	for _, q := range c.Queues {
		longest = max(longest, q.Forward.Timeout)
	}
	if c.ShutdownGrace < longest {
		c.Warnings = append(c.Warnings, fmt.Sprintf(
			"SHUTDOWN_GRACE=%v is shorter than FORWARD_TIMEOUT=%v: a slow POST can be cut off at shutdown, which leaves its outcome unknown", c.ShutdownGrace, longest))
	}
}

// maxQueueName is the longest name of a queue in bytes: a short string of the protocol.
const maxQueueName = 255

// longestHold is how long a full prefetch may take: half of the 30 minutes after which RabbitMQ closes a channel whose
// deliveries are not acknowledged (consumer_timeout, https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout).
const longestHold = 15 * time.Minute

// fitPrefetch fills in the default prefetch and lowers it until all of it can be worked off within longestHold.
func (q *QueueConfig) fitPrefetch() string {
	c := q.Forward.Concurrency
	if q.Prefetch == 0 {
		q.Prefetch = 4 * c
	}
	if c < 1 || q.Forward.Timeout <= 0 {
		return "" // refused elsewhere
	}
	limit, rule := max(c, c*int(longestHold/q.Forward.Timeout)), "PREFETCH / FORWARD_CONCURRENCY x FORWARD_TIMEOUT"
	if perHold := q.Forward.Rate * longestHold.Seconds(); perHold > 0 && perHold < float64(limit) {
		limit, rule = max(1, int(perHold)), "PREFETCH / FORWARD_RATE"
	}
	if q.Prefetch <= limit {
		return ""
	}
	note := fmt.Sprintf("PREFETCH of queue %s lowered from %d to %d: %s must stay within %v, or the broker takes deliveries back while they wait",
		q.Name, q.Prefetch, limit, rule, longestHold)
	q.Prefetch = limit
	return note
}

// maxPrefetch is the largest prefetch count the protocol can carry (a 16-bit field of basic.qos).
const maxPrefetch = 65535

func (q *QueueConfig) validate() []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if q.Prefetch < 0 || q.Prefetch > maxPrefetch {
		bad("PREFETCH: %d is out of range: 1 to %d, or unset for 4 x FORWARD_CONCURRENCY", q.Prefetch, maxPrefetch)
	}
	if q.BrakeAfter < 0 {
		bad("FORWARD_BRAKE_AFTER: %d must be 0 (off) or more", q.BrakeAfter)
	}
	if q.Retry.MaxAttempts < 1 || q.Retry.MaxAttempts > 60000 {
		bad("RETRY_MAX_ATTEMPTS: %d is out of range: 1 to 60000", q.Retry.MaxAttempts)
	}
	if q.Retry.MaxAge <= 0 {
		bad("RETRY_MAX_AGE: %v must be longer than 0", q.Retry.MaxAge)
	}
	if q.Retry.Hold <= 0 || q.Retry.Hold > longestHold {
		bad("RETRY_HOLD: %v is out of range: longer than 0, at most %v, or the broker takes deliveries back while they wait", q.Retry.Hold, longestHold)
	}
	longest := slices.Max(append([]time.Duration{0}, q.Retry.Backoff...))
	if longest > maxStep {
		bad("RETRY_BACKOFF: %v is longer than %v", longest, maxStep)
	}
	if need := q.Retry.MaxAge + longest + q.Dedup.Lease; q.Dedup.Retention <= need {
		bad("DEDUP_RETENTION: %v must be longer than RETRY_MAX_AGE + the longest step of RETRY_BACKOFF + DEDUP_LEASE = %v: a record must outlive the last retry", q.Dedup.Retention, need)
	}
	return problems
}

// checkTarget finds what can only be wrong once the queue's name is in FORWARD_URL.
func (e *environment) checkTarget(cfg forward.Config, queue string) {
	client, err := forward.New(cfg, queue)
	if err != nil {
		e.add([]error{err})
		return
	}
	client.Close()
}

// checkConsumers refuses one consumer name for several queues: an ID that fans out to both would be done in one only.
func (e *environment) checkConsumers(cfg *Config) {
	seen := map[string]string{}
	for _, q := range cfg.Queues {
		name := q.Dedup.Prefix + "\x00" + q.Dedup.Consumer
		if other, taken := seen[name]; taken {
			e.problem("DEDUP_CONSUMER", "%q is the consumer name of queues %q and %q: a message that fans out to both would be done in one only; leave it unset or set QUEUE_<NAME>_DEDUP_CONSUMER", q.Dedup.Consumer, other, q.Name)
		}
		seen[name] = q.Name
	}
}

// checkDeadLetterCircle refuses queues whose dead letters come round to where they began.
func (e *environment) checkDeadLetterCircle(cfg *Config) {
	next := map[string]string{}
	for _, q := range cfg.Queues {
		next[q.Name] = q.DeadLetterQueue
	}
	for _, q := range cfg.Queues {
		at, steps := q.DeadLetterQueue, 1
		for ; at != q.Name && next[at] != "" && steps <= len(next); steps++ {
			at = next[at]
		}
		if at == q.Name && steps > 1 {
			e.problem("DEADLETTER_QUEUE", "the dead letters of queue %q come back to it by way of %q: they would go round for ever", q.Name, q.DeadLetterQueue)
		}
	}
}

// defaultConsumer is {vhost}/{queue}. A slash in the queue's name is escaped, so that the last one is the one between
// the two: the queue eu/orders of the vhost shop is not the queue orders of the vhost shop/eu.
func defaultConsumer(vhost, queue string) string {
	return vhost + "/" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(queue)
}

// add notes problems found by a config struct. Each begins with the variable's name, which becomes the queue's own
// variable when that is where the value came from.
func (e *environment) add(problems []error) {
	for _, p := range problems {
		text := p.Error()
		name := text[:len(text)-len(strings.TrimLeft(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"))]
		if _, own := e.vars[e.prefix+name]; own && name != "" {
			text = e.prefix + text
		}
		if e.masked[name] || e.masked[e.prefix+name] {
			continue // its value did not even decode: said before
		}
		if !slices.Contains(e.problems, text) {
			e.problems = append(e.problems, text)
		}
	}
}

// queuePrefix is how a queue's own variables begin: QUEUE_<NAME>_, upper-cased, other characters "_".
func queuePrefix(queue string) string {
	return "QUEUE_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, queue) + "_"
}

// Names is a comma-separated list without blanks and without repeats.
type Names []string

// EnvDecode implements envconfig's decoder.
func (n *Names) EnvDecode(value string) error {
	*n = nil
	for part := range strings.SplitSeq(value, ",") {
		name := strings.TrimSpace(part)
		switch {
		case name == "":
			continue
		case len(name) > 255:
			return fmt.Errorf("a queue name has at most 255 bytes")
		case slices.Contains(*n, name):
			return fmt.Errorf("%q is listed twice", name)
		}
		*n = append(*n, name)
	}
	return nil
}

// LogLevel is debug, info, warn or error.
type LogLevel slog.Level

// EnvDecode implements envconfig's decoder.
func (l *LogLevel) EnvDecode(value string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[strings.ToLower(value)]
	if !ok {
		return fmt.Errorf("%q is not a log level: debug, info, warn or error", value)
	}
	*l = LogLevel(level)
	return nil
}

// LogFormat is json or text.
type LogFormat string

// EnvDecode implements envconfig's decoder.
func (f *LogFormat) EnvDecode(value string) error {
	if value != "json" && value != "text" {
		return fmt.Errorf("%q is not a log format: json or text", value)
	}
	*f = LogFormat(value)
	return nil
}

// queueVariables and processVariables are the names that the structs declare.
func queueVariables() []variable   { return variables(reflect.TypeFor[QueueConfig]()) }
func processVariables() []variable { return variables(reflect.TypeFor[Config]()) }

// LogHandler writes log lines to w as LOG_LEVEL and LOG_FORMAT say.
func (c *Config) LogHandler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.Level(c.LogLevel)}
	if c.LogFormat == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}
