package forward

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"
)

// UnknownPolicy says what to do with a message after an unknown outcome.
type UnknownPolicy string

const (
	// UnknownRetry sends the message again, flagged, at most UnknownMax times.
	UnknownRetry UnknownPolicy = "retry"
	// UnknownDeadLetter never sends a message twice: it goes to the dead letters.
	UnknownDeadLetter UnknownPolicy = "deadletter"
	// UnknownLookup asks the service, at LookupURL, what became of it.
	UnknownLookup UnknownPolicy = "lookup"
)

// minRate is one request in 500 seconds: a message may wait its turn for that long without an ack.
const minRate = 0.002

// Config is how the messages of one queue are sent to the service.
type Config struct {
	// URL is where messages are POSTed: http://, https:// or
	// unix:/path/to.sock:/http/path. Its path and query may have placeholders:
	// {queue}, {routing_key}, {type}, {id}, {header:NAME}. Required. It may hold
	// credentials: never print it.
	URL string `env:"FORWARD_URL"`
	// Timeout bounds a whole request. It should be longer than the service's own
	// limit: a request cut off here has an unknown outcome.
	Timeout time.Duration `env:"FORWARD_TIMEOUT, default=60s"`
	// Concurrency is how many POSTs may run at once.
	Concurrency int `env:"FORWARD_CONCURRENCY, default=4"`
	// HealthPath is asked with GET to see whether the service is ready: 2xx is.
	// Empty means that a TCP connect is enough.
	HealthPath string `env:"FORWARD_HEALTH_PATH"`
	// Rate is how many requests a second may begin. 0 is no limit.
	Rate float64 `env:"FORWARD_RATE, default=0"`
	// Headers are added to each request: lines of "Name: value", with the
	// placeholders of URL. They may hold secrets: never print them.
	// "Connection: close" gives each request a connection of its own.
	Headers string `env:"FORWARD_HEADERS"`
	// CAFile holds the PEM certificates that https services are trusted by,
	// instead of the system's. It is read again for each connection.
	CAFile string `env:"FORWARD_TLS_CA_FILE"`
	// IdempotencyKey is how the header Idempotency-Key is written: plain, or
	// quoted as a structured-field string.
	IdempotencyKey KeyFormat `env:"FORWARD_IDEMPOTENCY_KEY, default=plain"`
	// ContentType is sent for messages without one. auto looks at the body.
	ContentType string `env:"FORWARD_CONTENT_TYPE, default=auto"`
	// StatusDone, StatusDefer, StatusFail, StatusReject and StatusUnknown replace
	// the statuses that have this outcome: 200-299,409. Empty keeps the defaults.
	StatusDone    Statuses `env:"FORWARD_STATUS_DONE"`
	StatusDefer   Statuses `env:"FORWARD_STATUS_DEFER"`
	StatusFail    Statuses `env:"FORWARD_STATUS_FAIL"`
	StatusReject  Statuses `env:"FORWARD_STATUS_REJECT"`
	StatusUnknown Statuses `env:"FORWARD_STATUS_UNKNOWN"`
	// OnUnknown is what happens after an unknown outcome: retry, deadletter or
	// lookup.
	OnUnknown UnknownPolicy `env:"FORWARD_ON_UNKNOWN, default=retry"`
	// UnknownMax is how often a message may end unknown before it is
	// dead-lettered. 0 dead-letters at the first one.
	UnknownMax int `env:"FORWARD_UNKNOWN_MAX, default=3"`
	// LookupURL is asked with GET what became of a request, for
	// OnUnknown=lookup: 2xx says done, 404 neither done nor in progress. It must
	// have {id} and may have {queue}. It may hold credentials: never print it.
	LookupURL string `env:"FORWARD_LOOKUP_URL"`

	// Dial, when set, opens the connections to the service, as net.Dialer's DialContext does. Default: the network's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
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
	_, err := newTarget("FORWARD_URL", c.URL, "queue")
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
	if c.Rate != 0 && !(c.Rate >= minRate) || math.IsInf(c.Rate, 0) {
		report(fmt.Errorf("FORWARD_RATE is %v: set requests a second, such as 50 or 0.5, %v at least, or leave it unset for no limit", c.Rate, minRate))
	}
	_, err = parseOwnHeaders(c.Headers, "queue")
	report(err)
	report(c.IdempotencyKey.validate())
	if c.ContentType != "" && c.ContentType != AutoType && !isMediaType(c.ContentType) {
		report(fmt.Errorf("FORWARD_CONTENT_TYPE is %q: set auto or a media type such as application/json", c.ContentType))
	}
	if c.CAFile != "" {
		_, err := readPool(c.CAFile)
		report(err)
	}
	problems = append(problems, c.checkStatuses()...)
	report(c.OnUnknown.validate())
	report(c.checkLookup())
	if c.UnknownMax < 0 {
		report(fmt.Errorf("FORWARD_UNKNOWN_MAX is %d: set it to 0 or more", c.UnknownMax))
	}
	return problems
}

func (p UnknownPolicy) validate() error {
	switch p {
	case UnknownRetry, UnknownDeadLetter, UnknownLookup:
		return nil
	default:
		return fmt.Errorf("FORWARD_ON_UNKNOWN is %q: set retry, deadletter or lookup", string(p))
	}
}
