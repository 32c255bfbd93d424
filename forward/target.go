package forward

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// dialTimeout bounds one connect. The service is next door: a connect that
	// takes longer is no sign of a slow network but of a wrong address.
	dialTimeout = 3 * time.Second
	// handshakeTimeout bounds the TLS handshake after it.
	handshakeTimeout = 5 * time.Second
	// maxSocketPath is what Linux takes as the path of a Unix socket: 108 bytes
	// with the closing zero (unix(7)).
	maxSocketPath = 107

	queuePlaceholder = "{queue}"
)

// The texts name the variable and the cure and repeat nothing of the URL.
var (
	errURLMissing = errors.New("FORWARD_URL is missing: set it to where messages go, such as http://localhost:8080/messages")
	errURLSyntax  = errors.New("FORWARD_URL is not a valid URL: write http://host:port/path, https://host:port/path or " +
		"unix:/path/to.sock:/http/path, with special characters in credentials and query percent-encoded")
	errURLPort     = errors.New("FORWARD_URL has a port that does not exist: use a number from 1 to 65535")
	errURLFragment = errors.New("FORWARD_URL has a # part, which HTTP does not send: remove it or write it as %23")
	errURLSocket   = fmt.Errorf("FORWARD_URL needs the absolute path of a socket of at most %d bytes: write unix:/path/to.sock:/http/path", maxSocketPath)
	errURLPlace    = errors.New("FORWARD_URL has a placeholder outside its path and query: move it there")
	errURLBraces   = errors.New("FORWARD_URL has a single { or }: write {queue}, or %7B and %7D for the characters themselves")
	errURLDots     = errors.New("FORWARD_URL has a path segment . or .. (after {queue} was filled in): use another path or queue name")
	errHealthPath  = errors.New("FORWARD_HEALTH_PATH must be a path on the service that starts with /, such as /healthz, without # part")
)

// target is where requests go: FORWARD_URL with the placeholders filled in.
type target struct {
	url       *url.URL // what the request line and Host are made of; no credentials
	network   string   // tcp or unix
	addresses []string // tried in order
	auth      string   // the Authorization header for credentials in the URL; "" is none
}

// newTarget reads FORWARD_URL for a queue. Its errors start with the variable's
// name and show nothing of the URL.
func newTarget(raw, queue string) (*target, error) {
	if raw == "" {
		return nil, errURLMissing
	}
	if rest, ok := strings.CutPrefix(raw, "unix:"); ok {
		return newUnixTarget(rest, queue)
	}
	u, err := parseURL(raw, queue)
	if err != nil {
		return nil, err
	}
	addresses, err := tcpAddresses(u)
	if err != nil {
		return nil, err
	}
	t := &target{url: u, network: "tcp", addresses: addresses}
	if u.User != nil {
		// net/http's Client would turn them into this header; a Transport does not.
		password, _ := u.User.Password()
		t.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	return t, nil
}

// newUnixTarget reads /path/to.sock[:/http/path], what follows "unix:".
func newUnixTarget(rest, queue string) (*target, error) {
	rest = strings.TrimPrefix(rest, "//")
	socket, path, found := strings.Cut(rest, ":")
	if !found {
		path = "/"
	}
	if !strings.HasPrefix(socket, "/") || len(socket) > maxSocketPath {
		return nil, errURLSocket
	}
	if strings.ContainsAny(socket, "{}") {
		return nil, errURLPlace
	}
	if !strings.HasPrefix(path, "/") {
		return nil, errURLSyntax
	}
	u, err := parseURL("http://localhost"+path, queue)
	if err != nil {
		return nil, err
	}
	return &target{url: u, network: "unix", addresses: []string{socket}}, nil
}

// parseURL fills in the placeholders of an http or https URL and parses it.
// Errors of the parser are not passed on: they quote the URL.
func parseURL(raw, queue string) (*url.URL, error) {
	if strings.Contains(raw, "#") {
		return nil, errURLFragment
	}
	expanded, err := expand(raw, queue)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(expanded)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !queryIsLegal(u.RawQuery) {
		return nil, errURLSyntax
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if s, err := url.PathUnescape(segment); err != nil || s == "." || s == ".." {
			return nil, errURLDots
		}
	}
	return u, nil
}

// expand fills in {queue}: as one path segment in the path, as one value in the
// query. Any other placeholder is refused, and any in the scheme, host or port.
func expand(raw, queue string) (string, error) {
	if !strings.ContainsAny(raw, "{}") {
		return raw, nil
	}
	head, path := splitAuthority(raw)
	if !strings.Contains(head, "://") {
		return "", errURLSyntax
	}
	if strings.ContainsAny(head, "{}") {
		return "", errURLPlace
	}
	path, query, hasQuery := strings.Cut(path, "?")
	path, err := fill(path, url.PathEscape(queue))
	if err != nil {
		return "", err
	}
	if !hasQuery {
		return head + path, nil
	}
	query, err = fill(query, url.QueryEscape(queue))
	return head + path + "?" + query, err
}

// splitAuthority cuts a URL before its path or query.
func splitAuthority(raw string) (head, rest string) {
	start := strings.Index(raw, "://")
	if start < 0 {
		return raw, ""
	}
	start += len("://")
	end := strings.IndexAny(raw[start:], "/?")
	if end < 0 {
		return raw, ""
	}
	return raw[:start+end], raw[start+end:]
}

func fill(s, queue string) (string, error) {
	rest := strings.ReplaceAll(s, queuePlaceholder, "")
	if open := strings.IndexByte(rest, '{'); open >= 0 {
		if length := strings.IndexByte(rest[open:], '}'); length >= 0 {
			return "", fmt.Errorf("FORWARD_URL has the placeholder %s: this version knows only %s",
				rest[open:open+length+1], queuePlaceholder)
		}
	}
	if strings.ContainsAny(rest, "{}") {
		return "", errURLBraces
	}
	return strings.ReplaceAll(s, queuePlaceholder, queue), nil
}

// queryIsLegal: net/http writes a query as it stands, and a space in it would
// break the request line.
func queryIsLegal(query string) bool {
	for i := range len(query) {
		if query[i] <= ' ' || query[i] >= 0x7f {
			return false
		}
	}
	return true
}

// tcpAddresses says where to connect. "localhost" needs no resolver (RFC 6761,
// 6.3) and is tried both ways, since services listen on one family as on the other.
func tcpAddresses(u *url.URL) ([]string, error) {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, errURLPort
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}, nil
	}
	return []string{net.JoinHostPort(host, port)}, nil
}

// health is the URL of the health check, a path on the same service.
func (t *target) health(path string) (*url.URL, error) {
	ref, err := url.Parse(path)
	if err != nil || ref.Host != "" || !strings.HasPrefix(path, "/") || strings.Contains(path, "#") || !queryIsLegal(ref.RawQuery) {
		return nil, errHealthPath
	}
	u := *t.url
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = ref.Path, ref.RawPath, ref.RawQuery, ref.ForceQuery
	return &u, nil
}

func checkHealthPath(path string) error {
	if path == "" {
		return nil
	}
	_, err := (&target{url: &url.URL{}}).health(path)
	return err
}

// dial connects to the first address that answers.
func (t *target) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	var failed error
	for _, address := range t.addresses {
		conn, err := dialer.DialContext(ctx, t.network, address)
		if err == nil {
			return conn, nil
		}
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; %w", failed, err)
		}
	}
	return nil, failed
}

// dialTLS connects and shakes hands, as HTTP/1.1 only.
func (t *target) dialTLS(ctx context.Context) (*tls.Conn, error) {
	socket, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Client(socket, &tls.Config{
		ServerName: t.url.Hostname(),
		NextProtos: []string{"http/1.1"},
		MinVersion: tls.VersionTLS12,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("handshake with %s: %w", socket.RemoteAddr(), err)
	}
	return conn, nil
}

// String names the target for logs and errors, without credentials and query.
func (t *target) String() string {
	if t.network == "unix" {
		return "unix:" + t.addresses[0] + ":" + t.url.EscapedPath()
	}
	return t.url.Scheme + "://" + t.url.Host + t.url.EscapedPath()
}
