package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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
	// maxAnswerHeader bounds the status line and headers of an answer.
	maxAnswerHeader = 64 << 10
	// writeBuffer makes headers and a small body leave in one write.
	writeBuffer = 16 << 10
	// idleTimeout is how long an unused connection is kept. It has to be shorter
	// than the service's own: a service that closes first may do so just when the
	// next request is on its way, and that request's outcome is then unknown. The
	// shortest common default is 2 s (gunicorn), then 5 s (Node, Apache, uvicorn).
	// A new connection to a neighbour costs some 50 µs, so little is lost. A service
	// that is set to 1 s counts from when it answered, which is a little earlier.
	idleTimeout = 900 * time.Millisecond
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
	config    Config
	queue     string
	target    *target
	table     statusTable // what a status means
	static    []staticHeader
	own       []ownHeader   // those with placeholders
	host      string        // the Host header
	keepsNone bool          // each request has a connection of its own, and says so
	template  *http.Request // what all POSTs share
	transport *http.Transport
	probing   *http.Transport // opens a connection for each health check
	health    *http.Request   // nil: a TCP connect is enough
	lookup    *target         // nil: nothing can be looked up
	question  *http.Request   // what all lookups share
	secrets   []string        // no error shows them
	asking    *http.Transport // for lookups
	buffers   sync.Pool       // of *[4096]byte, for answers
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
	c.buffers.New = func() any { return new([4096]byte) }
	if err := c.prepareHeaders(); err != nil {
		return nil, err
	}
	c.template = &http.Request{
		Method: http.MethodPost, URL: target.url, Host: c.host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	c.transport = newTransport(c.dialGuarded, c.dialGuardedTLS)
	c.transport.MaxIdleConnsPerHost = cfg.Concurrency
	c.transport.DisableKeepAlives = c.keepsNone
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
	return nil
}

// Close closes idle connections. No Post or Probe may run.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.probing.CloseIdleConnections()
	if c.asking != nil {
		c.asking.CloseIdleConnections()
	}
}

// Target names where the messages go, without credentials and query.
func (c *Client) Target() string { return c.target.String() }

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport that speaks HTTP/1.1 and nothing else: no
// proxy from the environment, no compression, no waiting for 100 Continue.
func newTransport(dial, dialTLS dialFunc) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            dial,
		DialTLSContext:         dialTLS,
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
		WriteBufferSize:        writeBuffer,
	}
}

func (c *Client) dialGuarded(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := c.target.dial(ctx)
	if err != nil {
		return nil, err
	}
	return guard(conn, conn), nil
}

func (c *Client) dialGuardedTLS(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := c.target.dialTLS(ctx)
	if err != nil {
		return nil, err
	}
	return guard(conn, conn.NetConn()), nil
}

// Post sends a message, at most once, and says what became of it. When ctx ends
// (lease lost, shutdown) the outcome is Unreachable before a byte was sent and
// Unknown after. Post reads r.Body and r.Headers until it returns.
func (c *Client) Post(ctx context.Context, r *Request) Result {
	timeout := c.config.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	now := time.Now()
	ctx, cancel := context.WithDeadlineCause(ctx, now.Add(timeout), ErrTimeout)
	defer cancel()
	address, err := c.target.addressOf(r)
	if err != nil { // nor will there ever be one
		return Result{Outcome: Reject, Err: err}
	}
	header, dropped := c.headers(r, now.Add(timeout))

	result, again := c.send(ctx, address, header, r)
	if again {
		// The service has closed a kept connection and not a byte had left. Others
		// kept from that time are likely closed as well.
		c.transport.CloseIdleConnections()
		result, _ = c.send(ctx, address, header, r)
	}
	result.DroppedHeaders = dropped
	return result
}

// send makes one request. again says that it failed only for want of a living
// connection: nothing was sent and a fresh connection may do.
func (c *Client) send(ctx context.Context, address *url.URL, header http.Header, r *Request) (result Result, again bool) {
	a := attempt{permit: r.Permit}
	var reused bool
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		reused = info.Reused
		info.Conn.(*guardedConn).arm(&a)
	}}
	response, err := c.transport.RoundTrip(c.request(httptrace.WithClientTrace(ctx, trace), address, header, r.Body))
	if err == nil && !a.hasBegun() {
		_ = response.Body.Close()
		err = errStale // an answer to nothing
	}
	if err != nil {
		if a.end() {
			return Result{Outcome: Unknown, Err: c.failure(ctx, "after the request began to be sent", err)}, false
		}
		if refused := a.refusal(); refused != nil {
			return Result{Outcome: Unreachable, Err: fmt.Errorf("post to %s: not sent: %w", c.target, refused)}, false
		}
		again = reused && ctx.Err() == nil
		return Result{Outcome: Unreachable, Err: c.failure(ctx, "before the request was sent", err)}, again
	}
	defer a.end()
	return c.answer(ctx, response), false
}

// request builds the POST so that net/http cannot repeat it: it repeats only a
// request without body, with NoBody or with GetBody (Request.isReplayable), and,
// when it believes that nothing was sent, one of known length 0
// (persistConn.shouldRetryRequest). So even an empty body is a body here.
func (c *Client) request(ctx context.Context, address *url.URL, header http.Header, body []byte) *http.Request {
	request := c.template.WithContext(ctx)
	request.URL, request.Header = address, header
	// net/http knows this type to be in memory, and then sends headers and body in
	// one write.
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		// A body with length 0 is to net/http one of unknown length, which it sends
		// in chunks. "identity" (never sent) stops that, and net/http leaves alone a
		// header that it does not know by its usual spelling.
		request.TransferEncoding = []string{"identity"}
		header["content-length"] = []string{"0"}
	}
	return request
}

// answer reads an answer to its end or to the bound, and classifies it.
func (c *Client) answer(ctx context.Context, response *http.Response) Result {
	defer response.Body.Close() //nolint:errcheck // what matters has been read
	result := Result{Status: response.StatusCode}
	result.Outcome, result.RetryAfter = classify(&c.table, response.StatusCode, response.Header, time.Now())
	if response.StatusCode < 200 {
		result.Err = fmt.Errorf("post to %s: status %d is no answer", c.target, response.StatusCode)
		return result
	}
	var err error
	result.Excerpt, err = c.readBody(response)
	if err != nil {
		result.Outcome, result.RetryAfter = Unknown, 0
		result.Err = c.failure(ctx, "while the answer was read", err)
	}
	return result
}

// readBody reads to the end or to the bound and keeps the beginning.
func (c *Client) readBody(response *http.Response) (excerpt []byte, err error) {
	if response.ContentLength == 0 {
		return nil, nil
	}
	buffer := c.buffers.Get().(*[4096]byte)
	defer c.buffers.Put(buffer)
	for total := 0; total < maxAnswer; {
		n, err := response.Body.Read(buffer[:min(len(buffer), maxAnswer-total)])
		total += n
		excerpt = append(excerpt, buffer[:min(n, maxExcerpt-len(excerpt))]...)
		if err == io.EOF {
			return excerpt, nil
		}
		if err != nil {
			return excerpt, err
		}
	}
	return excerpt, nil
}

// failure names the target and the moment. What ended the context says more than
// the broken connection that followed.
func (c *Client) failure(ctx context.Context, when string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return c.hide(fmt.Errorf("post to %s: %s: %w", c.target, when, err))
}
