package proxy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/forward"
)

// four are the variables that are needed; tests add to them. A later value of the same name wins.
func four(more ...string) []string {
	return append([]string{
		"RABBITMQ_URL=amqp://u:hunter2@broker:5672/shop", "REDIS_URL=redis://store:6379", "QUEUES=orders", "FORWARD_URL=http://localhost:8080/",
	}, more...)
}

func mustLoad(t *testing.T, environ []string) *Config {
	t.Helper()
	cfg, err := Load(environ, "test")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestFourVariablesAreEnough(t *testing.T) {
	cfg := mustLoad(t, four())
	q := cfg.Queues[0]
	type view struct {
		Prefetch, Concurrency, Attempts int
		DeadLetters, Consumer           string
		Lease, Retention, Timeout, Age  time.Duration
		Ladder                          Ladder
		OnUnknown                       forward.UnknownPolicy
		Grace                           time.Duration
	}
	want := view{
		Prefetch: 16, Concurrency: 4, Attempts: 6, DeadLetters: "orders.dead", Consumer: "shop/orders",
		Lease: 30 * time.Second, Retention: 48 * time.Hour, Timeout: time.Minute, Age: 24 * time.Hour,
		Ladder: Ladder{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}, OnUnknown: forward.UnknownRetry, Grace: 25 * time.Second,
	}
	got := view{
		q.Prefetch, q.Forward.Concurrency, q.Retry.MaxAttempts, q.DeadLetterQueue, q.Dedup.Consumer,
		q.Dedup.Lease, q.Dedup.Retention, q.Forward.Timeout, q.Retry.MaxAge, q.Retry.Backoff, q.Forward.OnUnknown, cfg.ShutdownGrace,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestProblemsAreReportedTogether wants, for each environment, every text in one error and nothing of a secret.
func TestProblemsAreReportedTogether(t *testing.T) {
	tests := map[string]struct {
		environ []string
		want    []string
	}{
		"nothing set": {nil, []string{"RABBITMQ_URL: is required", "QUEUES: is required", "REDIS_URL: is required", "FORWARD_URL is missing"}},
		"three mistakes": {
			four("FORWARD_TIMEOUT=30", "PREFETCH=many", "RETRY_BACKOFF=1s,x"),
			[]string{`FORWARD_TIMEOUT: missing unit in duration "30": a duration needs a number and a unit`, `PREFETCH: "many" is not a whole number`, `RETRY_BACKOFF: invalid duration "x"`},
		},
		"queue's own value":  {four("QUEUE_ORDERS_RETRY_MAX_ATTEMPTS=0"), []string{"QUEUE_ORDERS_RETRY_MAX_ATTEMPTS: 0 is out of range"}},
		"short retention":    {four("DEDUP_RETENTION=1d"), []string{"DEDUP_RETENTION: 24h0m0s must be longer than RETRY_MAX_AGE"}},
		"step too long":      {four("RETRY_BACKOFF=1s,8d", "DEDUP_RETENTION=30d"), []string{"RETRY_BACKOFF: 192h0m0s is longer than 168h0m0s"}},
		"hold too long":      {four("RETRY_HOLD=16m"), []string{"RETRY_HOLD: 16m0s is out of range"}},
		"negative step":      {four("RETRY_BACKOFF=-1s"), []string{"RETRY_BACKOFF: -1s: a step must be longer than 0"}},
		"queues that share":  {four("QUEUES=a-b,a.b"), []string{`QUEUES: "a-b" and "a.b" both read their settings from QUEUE_A_B_*`}},
		"queue twice":        {four("QUEUES=a,a"), []string{`QUEUES: "a" is listed twice`}},
		"global consumer":    {four("QUEUES=a,b", "DEDUP_CONSUMER=c"), []string{`DEDUP_CONSUMER: "c" is the consumer name of queues "a" and "b"`}},
		"dead letter loop":   {four("DEADLETTER_QUEUE={queue}"), []string{`DEADLETTER_QUEUE: is the source queue "orders" itself`}},
		"dead letter circle": {four("QUEUES=a,b", "QUEUE_A_DEADLETTER_QUEUE=b", "QUEUE_B_DEADLETTER_QUEUE=a"), []string{`DEADLETTER_QUEUE: the dead letters of queue "a" come back to it by way of "b"`}},
		"dead letter name":   {four("QUEUES=" + strings.Repeat("q", 252)), []string{"is longer than the 255 bytes"}},
		"wait queue name":    {four("QUEUES="+strings.Repeat("q", 248), "DEADLETTER_QUEUE=dead"), []string{"would have more than 255 bytes"}},
		"password in URL":    {four("RABBITMQ_URL=amqp://u:hunter2#x@broker/"), []string{"RABBITMQ_URL: is not a valid URL"}},
		"wrong scheme":       {four("RABBITMQ_URL=http://u:hunter2@broker/"), []string{"RABBITMQ_URL: must begin with amqp:// or amqps://"}},
		"not yet":            {four("HEALTH_DRAIN=true"), []string{"HEALTH_DRAIN: is not supported by this version yet; unset it or set it to false"}},
		"not yet, queue":     {four("QUEUE_ORDERS_HEALTH_DRAIN=true"), []string{"QUEUE_ORDERS_HEALTH_DRAIN: is not supported"}},
		"no order":           {four("ORDERING=strict"), []string{`ORDERING: "strict" is no order: none, queue, or key:SOURCE`}},
		"no key":             {four("QUEUE_ORDERS_ORDERING=key:customer"), []string{`QUEUE_ORDERS_ORDERING: "customer" is no place`}},
		"not yet, file":      {four("ADMIN_TOKEN_FILE=/x"), []string{"ADMIN_TOKEN_FILE: is not supported"}},
		"not for a queue":    {four("QUEUE_ORDERS_REDIS_URL=redis://x"), []string{"QUEUE_ORDERS_REDIS_URL: REDIS_URL holds for the whole process"}},
		"value and file":     {four("REDIS_URL_FILE=/x"), []string{"REDIS_URL: is set, and so is REDIS_URL_FILE"}},
		"file missing":       {four("REDIS_PASSWORD_FILE=/does/not/exist"), []string{"REDIS_PASSWORD_FILE: read file"}},
		"log level":          {four("LOG_LEVEL=loud", "LOG_FORMAT=xml"), []string{`LOG_LEVEL: "loud" is not a log level`, `LOG_FORMAT: "xml" is not`}},
		"dots":               {four("QUEUES=..", "FORWARD_URL=http://h/{queue}"), []string{"FORWARD_URL has a path segment . or .."}},
		"bool":               {four("REDIS_CLUSTER=maybe"), []string{`REDIS_CLUSTER: "maybe" is neither true nor false`}},
		"grace":              {four("SHUTDOWN_GRACE=1ms"), []string{"SHUTDOWN_GRACE: 1ms is too short"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Load(tt.environ, "test")
			var problems ConfigError
			if !errors.As(err, &problems) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is in the error:\n%v", err)
			}
		})
	}
}

func TestDefaultConsumersAreDistinct(t *testing.T) {
	seen := map[string][2]string{}
	for _, pair := range [][2]string{{"/", "orders"}, {"shop", "eu/orders"}, {"shop/eu", "orders"}, {"shop", "eu%2Forders"}, {"/", "/orders"}, {"//", "orders"}} {
		name := defaultConsumer(pair[0], pair[1])
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %q", other, pair, name)
		}
		seen[name] = pair
	}
	if got := defaultConsumer("/", "orders"); got != "//orders" {
		t.Errorf("the default vhost gives %q", got)
	}
}

func TestOneProblemIsReportedOnce(t *testing.T) {
	_, err := Load(four("QUEUES=a,b,c", "FORWARD_TIMEOUT=30"), "test")
	var problems ConfigError
	if !errors.As(err, &problems) || len(problems.Problems) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestWhereAValueComesFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("redis://from-file:6379\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		environ []string
		want    string // of REDIS_URL, then FORWARD_URL
	}{
		"plain":            {four(), "redis://store:6379 http://localhost:8080/"},
		"prefix wins":      {four("RABBITONCE_REDIS_URL=redis://own:6379"), "redis://own:6379 http://localhost:8080/"},
		"file":             {four("REDIS_URL=", "REDIS_URL_FILE="+file), "redis://from-file:6379 http://localhost:8080/"},
		"prefixed file":    {four("RABBITONCE_REDIS_URL_FILE=" + file), "redis://from-file:6379 http://localhost:8080/"},
		"queue wins":       {four("QUEUE_ORDERS_FORWARD_URL=http://queue/"), "redis://store:6379 http://queue/"},
		"prefixed queue":   {four("QUEUE_ORDERS_FORWARD_URL=http://queue/", "RABBITONCE_QUEUE_ORDERS_FORWARD_URL=http://both/"), "redis://store:6379 http://both/"},
		"empty is not set": {four("RABBITONCE_REDIS_URL=", "QUEUE_ORDERS_FORWARD_URL="), "redis://store:6379 http://localhost:8080/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, lastWins(tt.environ))
			if got := cfg.Dedup.RedisURL.Reveal() + " " + cfg.Queues[0].Forward.URL; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// lastWins drops all but the last value of a name, an empty one included, as a shell would.
func lastWins(environ []string) []string {
	last := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = value
	}
	var out []string
	for name, value := range last {
		out = append(out, name+"="+value)
	}
	return out
}

func TestDaysAreDurationsOnlyWhereADurationIsMeant(t *testing.T) {
	cfg := mustLoad(t, four("DEDUP_RETENTION=7d", "RABBITMQ_PASSWORD=7d", "RETRY_MAX_AGE=2d"))
	if got := cfg.Queues[0].Dedup.Retention; got != 7*24*time.Hour {
		t.Errorf("retention is %v", got)
	}
	if got := cfg.RabbitMQPassword.Reveal(); got != "7d" {
		t.Errorf("password became %q", got)
	}
}

func TestPrefetchFitsTheAcknowledgementTimeout(t *testing.T) {
	tests := map[string]struct {
		more []string
		want int
		note bool
	}{
		"default":          {nil, 16, false},
		"as asked":         {[]string{"PREFETCH=60"}, 60, false},
		"lowered":          {[]string{"PREFETCH=61"}, 60, true},
		"never below POST": {[]string{"FORWARD_TIMEOUT=1h", "PREFETCH=9"}, 4, true},
		"short timeouts":   {[]string{"FORWARD_TIMEOUT=1s", "PREFETCH=3000"}, 3000, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, four(tt.more...))
			if got := cfg.Queues[0].Prefetch; got != tt.want {
				t.Errorf("prefetch is %d, want %d", got, tt.want)
			}
			if noted := strings.Contains(strings.Join(cfg.Warnings, "\n"), "PREFETCH of queue orders lowered"); noted != tt.note {
				t.Errorf("warnings: %q", cfg.Warnings)
			}
		})
	}
}

func TestStrayVariablesAreWarnedOf(t *testing.T) {
	cfg := mustLoad(t, four(
		"FORWARD_TIMOUT=1s", "QUEUE_ORDRES_PREFETCH=3", "RABBITONCE_FOO=1", "SHUTDOWN_GRACE=60s",
		"RABBITMQ_PORT_5672_TCP=x", "REDIS_SERVICE_HOST=x", "REDIS_SERVICE_PORT_REDIS=1", "REDIS_PORT=x", "PATH=x", "OTEL_SERVICE_NAME=x", "ORDERING=none",
	))
	var names []string
	for _, w := range cfg.Warnings {
		name, _, _ := strings.Cut(w, " ")
		names = append(names, name)
	}
	want := []string{"FORWARD_TIMOUT", "QUEUE_ORDRES_PREFETCH", "RABBITONCE_FOO"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("warnings (-want +got):\n%s\n%q", diff, cfg.Warnings)
	}
}

func TestAMisspeltNameIsGuessed(t *testing.T) {
	cfg := mustLoad(t, four("FORWARD_ON_UNKOWN=deadletter", "QUEUE_ORDERS_PREFECTH=3", "REDIS_SOMETHING=x"))
	text := strings.Join(cfg.Warnings, "\n")
	for _, want := range []string{
		"FORWARD_ON_UNKOWN is not a variable of this program: is FORWARD_ON_UNKNOWN meant?",
		"QUEUE_ORDERS_PREFECTH is not a variable of this program: is PREFETCH meant?",
		"REDIS_SOMETHING is not a variable of this program: misspelt, or",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	cfg := mustLoad(t, four("RABBITMQ_PASSWORD=hunter2", "REDIS_PASSWORD=hunter2"))
	var b strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		b.WriteString(fmt.Sprintf(format, *cfg))
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Errorf("a secret prints: %s", b.String())
	}
}
