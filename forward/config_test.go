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
	want := Config{URL: "http://app/", Timeout: time.Minute, Concurrency: 4, OnUnknown: UnknownRetry, UnknownMax: 3}
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
		"fine":         {func(*Config) {}, nil},
		"fine, health": {func(c *Config) { c.HealthPath = "/healthz?full=1" }, nil},
		"dead letter":  {func(c *Config) { c.OnUnknown, c.UnknownMax = UnknownDeadLetter, 0 }, nil},
		"lookup":       {func(c *Config) { c.OnUnknown = "lookup" }, []string{"FORWARD_ON_UNKNOWN=lookup is not supported by this version yet: set retry or deadletter"}},
		"health":       {func(c *Config) { c.HealthPath = "healthz" }, []string{errHealthPath.Error()}},
		"health, host": {func(c *Config) { c.HealthPath = "//other/healthz" }, []string{errHealthPath.Error()}},
		"health, #":    {func(c *Config) { c.HealthPath = "/healthz#" }, []string{errHealthPath.Error()}},
		"all at once": {func(c *Config) { *c = Config{HealthPath: "x", Concurrency: -1, Timeout: -time.Second, UnknownMax: -1} }, []string{
			errURLMissing.Error(),
			errHealthPath.Error(),
			"FORWARD_TIMEOUT is -1s: set a positive duration with a unit, such as 60s",
			"FORWARD_CONCURRENCY is -1: set it to 1 or more",
			`FORWARD_ON_UNKNOWN is "": set retry or deadletter`,
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
