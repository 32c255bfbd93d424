package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

const lookupVariable = "FORWARD_LOOKUP_URL"

// LookupTimeout bounds one lookup.
const LookupTimeout = 10 * time.Second

// Finding is what a lookup found. The zero value is NotKnown.
type Finding uint8

const (
	// NotKnown means that the answer was neither: the service has to be asked again.
	NotKnown Finding = iota
	// FoundDone means that the work is done.
	FoundDone
	// NeverDone means that it is neither done nor in progress.
	NeverDone
	// NoAnswer means that there was no answer in time.
	NoAnswer
	// NoService means that the service itself, where FORWARD_URL has it too, takes no connection.
	NoService
)

func (f Finding) String() string {
	switch f {
	case FoundDone:
		return "done"
	case NeverDone:
		return "not-done"
	case NoAnswer:
		return "no-answer"
	case NoService:
		return "no-service"
	default:
		return "not-known"
	}
}

// checkLookup finds what is wrong with FORWARD_LOOKUP_URL, and with its absence.
func (c *Config) checkLookup() error {
	if c.OnUnknown == UnknownLookup && c.IdempotencyKey == KeyQuoted {
		return errors.New("FORWARD_IDEMPOTENCY_KEY is quoted, and FORWARD_ON_UNKNOWN is lookup: a lookup asks for the key as it was sent, and whether a service stores the quotes is not known; set FORWARD_IDEMPOTENCY_KEY=plain")
	}
	if c.LookupURL == "" {
		if c.OnUnknown == UnknownLookup {
			return errors.New(lookupVariable + " is missing: FORWARD_ON_UNKNOWN=lookup needs it, like http://localhost:8080/payments/{id}")
		}
		return nil
	}
	t, err := newTarget(lookupVariable, c.LookupURL, "queue")
	if err != nil {
		return err
	}
	names := t.address.names()
	if !slices.Contains(names, "id") {
		return errors.New(lookupVariable + " has no {id}: it has to ask about one message, like http://localhost:8080/payments/{id}")
	}
	for _, name := range names {
		if name != "id" {
			return fmt.Errorf("%s has the placeholder {%s}: only {id} and {queue} are known when an outcome is looked up", lookupVariable, name)
		}
	}
	return nil
}

// prepareLookup sets up the target of lookups; there is none without FORWARD_LOOKUP_URL.
func (c *Client) prepareLookup() error {
	if c.config.LookupURL == "" {
		return nil
	}
	t, err := newTarget(lookupVariable, c.config.LookupURL, c.queue)
	if err != nil {
		return err
	}
	t.caFile, t.connect = c.config.CAFile, c.config.Dial
	c.lookup = t
	c.asking = newTransport(plainDials(t))
	c.question = &http.Request{
		Method: http.MethodGet, Host: t.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
	}
	if c.lookupIsHere() {
		c.question.Host = c.host
	}
	for _, static := range c.static {
		// What FORWARD_URL logs in with is nobody else's.
		if static.name != "Authorization" || c.lookupIsHere() || static.values[0] != c.target.auth {
			c.question.Header[static.name] = static.values
		}
	}
	if t.auth != "" {
		c.question.Header["Authorization"] = []string{t.auth}
	}
	return nil
}

// lookupIsHere tells whether lookups go to where messages go.
func (c *Client) lookupIsHere() bool {
	return c.lookup.network == c.target.network && c.lookup.url.Scheme == c.target.url.Scheme && slices.Equal(c.lookup.addresses, c.target.addresses)
}

// Lookup asks the service what became of the requests for an ID, with GET on FORWARD_LOOKUP_URL, in which {id} is the
// key as Idempotency-Key has it when it is plain. An error says why the finding is neither FoundDone nor NeverDone. It
// may be repeated.
func (c *Client) Lookup(ctx context.Context, id string) (Finding, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, LookupTimeout, ErrTimeout)
	defer cancel()
	address, err := c.lookup.addressOf(&Request{IdempotencyKey: idempotencyKey(id)})
	if err != nil {
		return NotKnown, fmt.Errorf("look up message: %w", err)
	}
	request := c.question.WithContext(ctx)
	request.URL = address
	response, err := c.asking.RoundTrip(request)
	if err != nil {
		finding := NoAnswer
		if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" && ctx.Err() == nil && c.lookupIsHere() {
			finding = NoService
		}
		return finding, c.hide(fmt.Errorf("get %s: %w", c.lookup, err))
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	if err != nil { // what breaks off is no answer
		return NoAnswer, c.hide(fmt.Errorf("get %s: while the answer was read: %w", c.lookup, err))
	}
	switch status := response.StatusCode; {
	case status >= 200 && status <= 299:
		return FoundDone, nil
	case status == http.StatusNotFound:
		return NeverDone, nil
	default:
		return NotKnown, fmt.Errorf("get %s: status %d says neither done (2xx) nor not done (404)", c.lookup, status)
	}
}

// ProbeLookup asks about an ID that no message has. A service that does not answer 404 to it would let work be taken for
// done that was never begun.
func (c *Client) ProbeLookup(ctx context.Context, id string) error {
	if c.lookup == nil || c.config.OnUnknown != UnknownLookup {
		return nil
	}
	finding, err := c.Lookup(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", lookupVariable, err)
	case finding != NeverDone:
		return fmt.Errorf("%s: get %s for an ID that no message has says done: it must answer 404", lookupVariable, c.lookup)
	}
	return nil
}
