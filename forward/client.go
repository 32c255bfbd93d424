package forward

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// maxAnswer bounds what is read of an answer's body; the connection is closed
	// when more is coming.
	maxAnswer = 64 << 10
	// maxExcerpt is how much of it is kept, for the dead letter.
	maxExcerpt = 1 << 10
	// smallBody is how large a body may be that leaves with the headers, in one write. It has room in the socket of a connection
	// on which nothing is under way, so that this write never waits for the service.
	smallBody = 16 << 10
)

// ErrTimeout is in Result.Err when there was no whole answer within the time of
// the request.
var ErrTimeout = fmt.Errorf("no complete answer in time: %w", context.DeadlineExceeded)

// Result is what became of one POST.
type Result struct {
	Outcome Outcome
	// Status is that of the answer, also of a broken one; 0 without an answer.
	Status int
	// RetryAfter is how long the service asks to wait with a deferred message;
	// 0 is no wish. At most an hour.
	RetryAfter time.Duration
	// Excerpt is the beginning of the answer's body, at most 1 KiB.
	Excerpt []byte
	// Err says why there is no whole answer; nil when there is one. It wraps the
	// cause of the context when that ended, and ErrTimeout after a timeout. It
	// names the target without credentials.
	Err error
	// DroppedHeaders counts what the publisher sent and the request had no room
	// for: message properties and AMQP headers.
	DroppedHeaders int
}

// Client sends the messages of one queue to the service. It is safe for
// concurrent use.
type Client struct {
	config     Config
	queue      string
	target     *target
	table      statusTable // what a status means
	static     []staticHeader
	own        []ownHeader // those with placeholders
	host       string      // the Host header
	hostHeader string      // as it is sent
	keepsNone  bool        // each request has a connection of its own, and says so
	common     []byte      // the headers that are the same for all requests
	pool       pool
	dial       func(context.Context) (*conn, error)
	probing    *http.Transport // opens a connection for each health check
	health     *http.Request   // nil: a TCP connect is enough
	lookup     *target         // nil: nothing can be looked up
	question   *http.Request   // what all lookups share
	secrets    []string        // no error shows them
	asking     *http.Transport // for lookups
	requests   sync.Pool       // of *[]byte, for requests
	buffers    sync.Pool       // of *[4096]byte, for answers
}

// New returns a client for a queue. It connects to nothing yet.
func New(cfg Config, queue string) (*Client, error) {
	if problems := cfg.Validate(); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	target, err := newTarget("FORWARD_URL", cfg.URL, queue)
	if err != nil {
		return nil, err
	}
	target.caFile, target.connect = cfg.CAFile, cfg.Dial
	c := &Client{config: cfg, queue: queue, target: target, table: cfg.outcomes()}
	c.requests.New = func() any { return new([]byte) }
	c.buffers.New = func() any { return new([4096]byte) }
	if err := c.prepareHeaders(); err != nil {
		return nil, err
	}
	c.pool.most = cfg.Concurrency
	c.dial = c.connection
	if err := c.prepareProbe(); err != nil {
		return nil, err
	}
	if err := c.prepareLookup(); err != nil {
		return nil, err
	}
	c.secrets = c.findSecrets()
	return c, nil
}

// prepareHeaders sorts what FORWARD_HEADERS adds: the same for all messages, or not, and Host, which is no header to
// net/http. A header of FORWARD_HEADERS wins over one of ours with its name.
func (c *Client) prepareHeaders() error {
	own, err := parseOwnHeaders(c.config.Headers, c.queue)
	if err != nil {
		return err
	}
	c.host = c.target.url.Host
	c.static = staticHeaders(c.queue, c.target.auth)
	for _, header := range own {
		value, fixed := header.value.fixed()
		c.static = slices.DeleteFunc(c.static, func(s staticHeader) bool { return s.name == header.name })
		switch {
		case header.name == "Host":
			c.host = value
		case closesConnection(header.name, value):
			c.keepsNone = true
		case fixed && value != "":
			c.static = append(c.static, staticHeader{header.name, []string{value}})
		case !fixed:
			c.own = append(c.own, header)
		}
	}
	c.common = renderStatic(c.static)
	c.hostHeader, err = hostHeader(c.target.url, c.host)
	return err
}

// hostHeader is Host as the standard library sends it: a name that is not ASCII in Punycode, an address without its zone.
func hostHeader(u *url.URL, host string) (string, error) {
	var text bytes.Buffer
	if err := (&http.Request{Method: http.MethodPost, URL: u, Host: host}).Write(&text); err != nil {
		return "", fmt.Errorf("FORWARD_URL has a host that cannot be sent: %w", err)
	}
	read, err := http.ReadRequest(bufio.NewReader(&text))
	if err != nil {
		return "", fmt.Errorf("FORWARD_URL has a host that cannot be sent: %w", err)
	}
	return read.Host, nil
}

// Close closes idle connections. No Post or Probe may run.
func (c *Client) Close() {
	c.pool.drop()
	c.probing.CloseIdleConnections()
	if c.asking != nil {
		c.asking.CloseIdleConnections()
	}
}

// Target names where the messages go, without credentials and query.
func (c *Client) Target() string { return c.target.String() }

// connection opens a connection to the service.
func (c *Client) connection(ctx context.Context) (*conn, error) {
	if c.target.url.Scheme != "https" {
		socket, err := c.target.dial(ctx)
		if err != nil {
			return nil, err
		}
		return newConn(socket, socket), nil
	}
	over, err := c.target.dialTLS(ctx)
	if err != nil {
		return nil, err
	}
	return newConn(over, over.NetConn()), nil
}

// Post sends a message, at most once, and says what became of it. When ctx ends
// (lease lost, shutdown) the outcome is Unreachable before a byte was sent and
// Unknown after. Post reads r.Body and r.Headers until it returns.
func (c *Client) Post(ctx context.Context, r *Request) Result {
	timeout := c.config.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	address, err := c.target.requestURI(r)
	if err != nil { // nor will there ever be one
		return Result{Outcome: Reject, Err: err}
	}
	p := post{client: c, request: r, end: time.Now().Add(timeout)}
	buffer := c.requests.Get().(*[]byte)
	defer c.requests.Put(buffer)
	head, dropped := c.appendHead((*buffer)[:0], address, r, p.end)
	if len(r.Body) <= smallBody {
		head = append(head, r.Body...)
	} else {
		p.rest = r.Body
	}
	p.head, *buffer = head, head

	result, again := p.send(ctx)
	if again {
		// The service has closed a kept connection and not a byte had left. Others
		// kept from that time are likely closed as well.
		c.pool.drop()
		result, _ = p.send(ctx)
	}
	result.DroppedHeaders = dropped
	return result
}

// answer reads an answer to its end or to the bound, and classifies it. whole tells that nothing of it is left to read.
func (p *post) answer(ctx context.Context, response *http.Response) (result Result, whole bool) {
	c := p.client
	result = Result{Status: response.StatusCode}
	result.Outcome, result.RetryAfter = classify(&c.table, response.StatusCode, response.Header, time.Now())
	if response.StatusCode < 200 {
		result.Err = fmt.Errorf("post to %s: status %d is no answer", c.target, response.StatusCode)
		return result, false
	}
	var err error
	result.Excerpt, whole, err = c.readBody(response)
	if err != nil {
		result.Outcome, result.RetryAfter = Unknown, 0
		result.Err = p.failure(ctx, "while the answer was read", err)
	}
	return result, whole
}

// readBody reads to the end, which whole tells, or to the bound, and keeps the beginning.
func (c *Client) readBody(response *http.Response) (excerpt []byte, whole bool, err error) {
	if response.ContentLength == 0 {
		return nil, true, nil
	}
	buffer := c.buffers.Get().(*[4096]byte)
	defer c.buffers.Put(buffer)
	for total := 0; total < maxAnswer; {
		n, err := response.Body.Read(buffer[:min(len(buffer), maxAnswer-total)])
		total += n
		excerpt = append(excerpt, buffer[:min(n, maxExcerpt-len(excerpt))]...)
		if err == io.EOF {
			return excerpt, true, nil
		}
		if err != nil {
			return excerpt, false, err
		}
	}
	return excerpt, false, nil
}
