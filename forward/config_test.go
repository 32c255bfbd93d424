package forward

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sethvargo/go-envconfig"
)

func TestConfigDefaults(t *testing.T) {
	var got Config
	err := envconfig.ProcessWith(context.Background(), &envconfig.Config{
		Target:   &got,
		Lookuper: envconfig.MapLookuper(map[string]string{"FORWARD_URL": "http://app/"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{URL: "http://app/", Timeout: time.Minute, Concurrency: 4, OnUnknown: UnknownRetry, UnknownMax: 3, IdempotencyKey: KeyPlain, ContentType: "auto"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if problems := got.Validate(); len(problems) > 0 {
		t.Errorf("defaults have problems: %v", problems)
	}
}

func TestConfigValidate(t *testing.T) {
	cases := map[string]struct {
		change func(*Config)
		want   []string
	}{
		"fine":             {func(*Config) {}, nil},
		"fine, health":     {func(c *Config) { c.HealthPath = "/healthz?full=1" }, nil},
		"dead letter":      {func(c *Config) { c.OnUnknown, c.UnknownMax = UnknownDeadLetter, 0 }, nil},
		"lookup":           {func(c *Config) { c.OnUnknown = "lookup" }, []string{"FORWARD_LOOKUP_URL is missing: FORWARD_ON_UNKNOWN=lookup needs it, like http://localhost:8080/payments/{id}"}},
		"lookup, fine":     {func(c *Config) { c.OnUnknown, c.LookupURL = "lookup", "http://app/{queue}/{id}" }, nil},
		"lookup, no id":    {func(c *Config) { c.LookupURL = "http://app/{queue}" }, []string{"FORWARD_LOOKUP_URL has no {id}: it has to ask about one message, like http://localhost:8080/payments/{id}"}},
		"lookup, by type":  {func(c *Config) { c.LookupURL = "http://app/{type}/{id}" }, []string{"FORWARD_LOOKUP_URL has the placeholder {type}: only {id} and {queue} are known when an outcome is looked up"}},
		"lookup, no URL":   {func(c *Config) { c.LookupURL = "app/{id}" }, []string{"FORWARD_LOOKUP_URL " + errURLSyntax.Error()}},
		"rate":             {func(c *Config) { c.Rate = -1 }, []string{"FORWARD_RATE is -1: set requests a second, such as 50 or 0.5, 0.002 at least, or leave it unset for no limit"}},
		"key":              {func(c *Config) { c.IdempotencyKey = "Quoted" }, []string{`FORWARD_IDEMPOTENCY_KEY is "Quoted": set plain or quoted`}},
		"content type":     {func(c *Config) { c.ContentType = "json" }, []string{`FORWARD_CONTENT_TYPE is "json": set auto or a media type such as application/json`}},
		"CA, missing":      {func(c *Config) { c.CAFile = "nowhere.pem" }, []string{"FORWARD_TLS_CA_FILE: read file: open nowhere.pem: no such file or directory"}},
		"CA, something":    {func(c *Config) { c.CAFile = "config.go" }, []string{"FORWARD_TLS_CA_FILE: config.go holds no certificate in PEM form"}},
		"status, twice":    {func(c *Config) { c.StatusDone, c.StatusReject = Statuses{{200, 299}, {409, 409}}, Statuses{{400, 499}} }, []string{"FORWARD_STATUS_DONE holds 409, and so does FORWARD_STATUS_REJECT: keep it in one of the two"}},
		"headers, no line": {func(c *Config) { c.Headers = "A: b\nsecret" }, []string{`FORWARD_HEADERS has a line 2 that is no header: write each header on a line of its own as "Name: value"`}},
		"headers, ours":    {func(c *Config) { c.Headers = "Delivery-Attempt: 1" }, []string{"FORWARD_HEADERS sets Delivery-Attempt, and headers that begin so tell of the message"}},
		"headers, kept":    {func(c *Config) { c.Headers = "Connection: keep-alive" }, []string{"FORWARD_HEADERS sets Connection, which belongs to the connection and not to the message"}},
		"headers, closed":  {func(c *Config) { c.Headers = "connection: {id}" }, []string{"FORWARD_HEADERS sets connection, which belongs to the connection and not to the message"}},
		"headers, twice":   {func(c *Config) { c.Headers = "A: b\na: c" }, []string{"FORWARD_HEADERS sets a twice: keep one line"}},
		"headers, unknown": {func(c *Config) { c.Headers = "A: {routing-key}" }, []string{"FORWARD_HEADERS: A has a placeholder that does not exist: there are {queue}, {routing_key}, {type}, {id} and {header:NAME}"}},
		"headers, bytes":   {func(c *Config) { c.Headers = "A: s\x01cret" }, []string{"FORWARD_HEADERS sets A to a value with characters that HTTP cannot carry: percent-encode them"}},
		"headers, host":    {func(c *Config) { c.Headers = "Host: a b/c" }, []string{"FORWARD_HEADERS sets Host to something that is no host name with or without a port, the same for all messages"}},
		"health":           {func(c *Config) { c.HealthPath = "healthz" }, []string{errHealthPath.Error()}},
		"health, host":     {func(c *Config) { c.HealthPath = "//other/healthz" }, []string{errHealthPath.Error()}},
		"health, #":        {func(c *Config) { c.HealthPath = "/healthz#" }, []string{errHealthPath.Error()}},
		"all at once": {func(c *Config) { *c = Config{HealthPath: "x", Concurrency: -1, Timeout: -time.Second, UnknownMax: -1} }, []string{
			"FORWARD_URL " + errURLMissing.Error(),
			errHealthPath.Error(),
			"FORWARD_TIMEOUT is -1s: set a positive duration with a unit, such as 60s",
			"FORWARD_CONCURRENCY is -1: set it to 1 or more",
			`FORWARD_ON_UNKNOWN is "": set retry, deadletter or lookup`,
			"FORWARD_UNKNOWN_MAX is -1: set it to 0 or more",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := Config{URL: "http://app/", Timeout: time.Minute, Concurrency: 4, OnUnknown: UnknownRetry, UnknownMax: 3}
			c.change(&cfg)
			var got []string
			for _, problem := range cfg.Validate() {
				got = append(got, problem.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if _, err := New(cfg, "q"); (err != nil) != (len(c.want) > 0) {
				t.Errorf("New: %v", err)
			}
		})
	}
}

func TestNewChecksQueueName(t *testing.T) {
	cfg := Config{URL: "http://app/{queue}", Timeout: time.Minute, Concurrency: 4, OnUnknown: UnknownRetry}
	if _, err := New(cfg, ".."); err == nil || !strings.HasPrefix(err.Error(), "FORWARD_URL ") {
		t.Errorf("New with queue ..: %v, want it refused", err)
	}
}
