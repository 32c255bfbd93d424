package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	// maxAddress bounds a path and query that a message fills: servers refuse request
	// lines over 4 KiB (gunicorn) or 8 KiB (nginx, Apache).
	maxAddress = 4000
)

// The texts follow the name of the variable, name the cure and repeat nothing of
// the URL.
var (
	errURLMissing = errors.New("is missing: set it to where messages go, such as http://localhost:8080/messages")
	errURLSyntax  = errors.New("is not a valid URL: write http://host:port/path, https://host:port/path or " +
		"unix:/path/to.sock:/http/path, with special characters in credentials and query percent-encoded")
	errURLPort     = errors.New("has a port that does not exist: use a number from 1 to 65535")
	errURLFragment = errors.New("has a # part, which HTTP does not send: remove it or write it as %23")
	errURLSocket   = fmt.Errorf("needs the absolute path of a socket of at most %d bytes: write unix:/path/to.sock:/http/path", maxSocketPath)
	errURLPlace    = errors.New("has a placeholder outside its path and query: move it there")
	errURLBraces   = errors.New("has a single { or }: write a placeholder like {queue}, or %7B and %7D for the characters themselves")
	errURLDots     = errors.New("has a path segment . or .. (after {queue} was filled in): use another path or queue name")
	errHealthPath  = errors.New("FORWARD_HEALTH_PATH must be a path on the service that starts with /, such as /healthz, without # part")
)

// target is where requests go: FORWARD_URL with the placeholders filled in.
type target struct {
	variable  string   // that names it
	url       *url.URL // what the request line and Host are made of; no credentials
	uri       string   // of the request line, when no message fills it
	address   address  // its path and query before a message fills it
	network   string   // tcp or unix
	addresses []string // tried in order
	caFile    string   // FORWARD_TLS_CA_FILE, read for each connection
	auth      string   // the Authorization header for credentials in the URL; "" is none
	connect   dialFunc // to an address; nil: by the network
}

// newTarget reads the URL of a variable for a queue. Its errors start with the
// variable's name and show nothing of the URL.
func newTarget(variable, raw, queue string) (*target, error) {
	t, err := parseTarget(raw, queue)
	if err != nil {
		return nil, fmt.Errorf("%s %w", variable, err)
	}
	t.variable, t.uri = variable, t.url.RequestURI()
	return t, nil
}

func parseTarget(raw, queue string) (*target, error) {
	if raw == "" {
		return nil, errURLMissing
	}
	if rest, ok := strings.CutPrefix(raw, "unix:"); ok {
		return newUnixTarget(rest, queue)
	}
	u, a, err := parseURL(raw, queue)
	if err != nil {
		return nil, err
	}
	addresses, err := tcpAddresses(u)
	if err != nil {
		return nil, err
	}
	t := &target{url: u, address: a, network: "tcp", addresses: addresses}
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
	u, a, err := parseURL("http://localhost"+path, queue)
	if err != nil {
		return nil, err
	}
	return &target{url: u, address: a, network: "unix", addresses: []string{socket}}, nil
}

// parseURL reads an http or https URL, whose placeholders the address holds; in the URL returned a letter stands for
// each. Errors of the parser are not passed on: they quote the URL.
func parseURL(raw, queue string) (*url.URL, address, error) {
	if strings.Contains(raw, "#") {
		return nil, address{}, errURLFragment
	}
	head, rest := splitAuthority(raw)
	switch {
	case !strings.Contains(head, "://"):
		return nil, address{}, errURLSyntax
	case strings.ContainsAny(head, "{}"):
		return nil, address{}, errURLPlace
	}
	a, err := parseAddress(rest, queue)
	if err != nil {
		return nil, address{}, err
	}
	if a.path.hasBraces() || a.query.hasBraces() {
		return nil, address{}, errURLBraces
	}
	u, err := url.Parse(head + a.fillSample())
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || !queryIsLegal(u.RawQuery) {
		return nil, address{}, errURLSyntax
	}
	if hasDots(u) {
		return nil, address{}, errURLDots
	}
	return u, a, nil
}

// hasDots finds the segments that servers resolve.
func hasDots(u *url.URL) bool {
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if s, err := url.PathUnescape(segment); err != nil || s == "." || s == ".." {
			return true
		}
	}
	return false
}

// requestURI is what a message's request line names.
func (t *target) requestURI(r *Request) (string, error) {
	if t.address.isFixed() {
		return t.uri, nil
	}
	u, err := t.addressOf(r)
	if err != nil {
		return "", err
	}
	return u.RequestURI(), nil
}

// addressOf is where one message goes.
func (t *target) addressOf(r *Request) (*url.URL, error) {
	if t.address.isFixed() {
		return t.url, nil
	}
	filled, err := t.address.fill(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.variable, err)
	}
	if len(filled) > maxAddress {
		return nil, fmt.Errorf("%s: %w: its path and query would have %d bytes, more than %d", t.variable, errAddress, len(filled), maxAddress)
	}
	ref, err := url.Parse("http://host" + filled)
	if err != nil || hasDots(ref) {
		return nil, fmt.Errorf("%s: %w: its path would have a segment that servers resolve (. or ..)", t.variable, errAddress)
	}
	u := *t.url
	u.Path, u.RawPath, u.RawQuery = ref.Path, ref.RawPath, ref.RawQuery
	return &u, nil
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
	connect := t.connect
	if connect == nil {
		connect = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	var failed error
	for _, address := range t.addresses {
		conn, err := connect(ctx, t.network, address)
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
	var authorities *x509.CertPool // nil: the system's
	if t.caFile != "" {
		var err error
		if authorities, err = readPool(t.caFile); err != nil {
			return nil, err
		}
	}
	socket, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Client(socket, &tls.Config{
		ServerName: t.url.Hostname(),
		RootCAs:    authorities,
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
		return "unix:" + t.addresses[0] + ":" + t.shownPath()
	}
	return t.url.Scheme + "://" + t.url.Host + t.shownPath()
}

// shownPath has the placeholders as they stand.
func (t *target) shownPath() string {
	if t.address.isFixed() {
		return t.url.EscapedPath()
	}
	var b strings.Builder
	for _, piece := range t.address.path {
		b.WriteString(piece.literal)
		if piece.name != "" {
			b.WriteString("{" + piece.name + "}")
		}
	}
	return b.String()
}
