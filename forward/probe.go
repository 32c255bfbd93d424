package forward

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// probeTimeout bounds a health check.
const probeTimeout = 5 * time.Second

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport that speaks HTTP/1.1 and nothing else: no
// proxy from the environment, no compression, no waiting for 100 Continue. It is
// for requests that may be repeated.
func newTransport(dial, dialTLS dialFunc) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            dial,
		DialTLSContext:         dialTLS,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// prepareProbe sets up the health check. Its connections are never kept, so that
// each check shows that the service takes new ones.
func (c *Client) prepareProbe() error {
	c.probing = newTransport(plainDials(c.target))
	if c.config.HealthPath == "" {
		return nil
	}
	u, err := c.target.health(c.config.HealthPath)
	if err != nil {
		return err
	}
	c.health = &http.Request{
		Method: http.MethodGet, URL: u, Host: c.host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{},
	}
	for _, static := range c.static {
		c.health.Header[static.name] = static.values
	}
	return nil
}

// plainDials connect to a target, for requests that may be repeated.
func plainDials(t *target) (dial, dialTLS dialFunc) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx) },
		func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dialTLS(ctx) }
}

// Probe asks whether the service can take requests: it answers 2xx under
// FORWARD_HEALTH_PATH or, without that, takes a connection. The error names the
// address that was tried.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if c.health == nil {
		return c.connect(ctx)
	}
	return c.probeHTTP(ctx)
}

// connect opens a connection, with TLS where requests need it.
func (c *Client) connect(ctx context.Context) error {
	var conn net.Conn
	var err error
	if c.target.url.Scheme == "https" {
		conn, err = c.target.dialTLS(ctx)
	} else {
		conn, err = c.target.dial(ctx)
	}
	if err != nil {
		return fmt.Errorf("connect to service: %w", err)
	}
	_ = conn.Close()
	return nil
}

func (c *Client) probeHTTP(ctx context.Context) error {
	address := target{url: c.health.URL, network: c.target.network, addresses: c.target.addresses}
	response, err := c.probing.RoundTrip(c.health.WithContext(ctx))
	if err != nil {
		return c.hide(fmt.Errorf("get %s: %w", &address, err))
	}
	_ = response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("get %s: status %d, want 2xx (FORWARD_HEALTH_PATH)", &address, response.StatusCode)
	}
	return nil
}
