package forward

import (
	"fmt"
	"time"
)

// UnknownPolicy says what to do with a message after an unknown outcome.
type UnknownPolicy string

const (
	// UnknownRetry sends the message again, flagged, at most UnknownMax times.
	UnknownRetry UnknownPolicy = "retry"
	// UnknownDeadLetter never sends a message twice: it goes to the dead letters.
	UnknownDeadLetter UnknownPolicy = "deadletter"
	// unknownLookup is part of the contract, but not built yet.
	unknownLookup UnknownPolicy = "lookup"
)

// Config is how the messages of one queue are sent to the service.
type Config struct {
	// URL is where messages are POSTed: http://, https:// or
	// unix:/path/to.sock:/http/path. {queue} in its path or query stands for the
	// name of the queue. Required. It may hold credentials: never print it.
	URL string `env:"FORWARD_URL"`
	// Timeout bounds a whole request. It should be longer than the service's own
	// limit: a request cut off here has an unknown outcome.
	Timeout time.Duration `env:"FORWARD_TIMEOUT, default=60s"`
	// Concurrency is how many POSTs may run at once.
	Concurrency int `env:"FORWARD_CONCURRENCY, default=4"`
	// HealthPath is asked with GET to see whether the service is ready: 2xx is.
	// Empty means that a TCP connect is enough.
	HealthPath string `env:"FORWARD_HEALTH_PATH"`
	// OnUnknown is what happens after an unknown outcome: retry or deadletter.
	OnUnknown UnknownPolicy `env:"FORWARD_ON_UNKNOWN, default=retry"`
	// UnknownMax is how often a message may end unknown before it is
	// dead-lettered. 0 dead-letters at the first one.
	UnknownMax int `env:"FORWARD_UNKNOWN_MAX, default=3"`
}

// Validate returns every problem. Each starts with the name of its variable, says
// what to do and repeats nothing of the URL, which may hold credentials.
func (c *Config) Validate() []error {
	var problems []error
	report := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	// The queue's own name is checked by New; any name will do for the rest.
	_, err := newTarget(c.URL, "queue")
	report(err)
	if err == nil {
		report(checkHealthPath(c.HealthPath))
	} else if c.HealthPath != "" && c.HealthPath[0] != '/' {
		report(errHealthPath)
	}
	if c.Timeout <= 0 {
		report(fmt.Errorf("FORWARD_TIMEOUT is %s: set a positive duration with a unit, such as 60s", c.Timeout))
	}
	if c.Concurrency < 1 {
		report(fmt.Errorf("FORWARD_CONCURRENCY is %d: set it to 1 or more", c.Concurrency))
	}
	report(c.OnUnknown.validate())
	if c.UnknownMax < 0 {
		report(fmt.Errorf("FORWARD_UNKNOWN_MAX is %d: set it to 0 or more", c.UnknownMax))
	}
	return problems
}

func (p UnknownPolicy) validate() error {
	switch p {
	case UnknownRetry, UnknownDeadLetter:
		return nil
	case unknownLookup:
		return fmt.Errorf("FORWARD_ON_UNKNOWN=lookup is not supported by this version yet: set retry or deadletter")
	default:
		return fmt.Errorf("FORWARD_ON_UNKNOWN is %q: set retry or deadletter", string(p))
	}
}
