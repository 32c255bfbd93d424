package proxy

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// endpoint is one host of RABBITMQ_URL with the vhost, and the login that the URL gives.
type endpoint struct {
	host     string
	port     int
	tls      bool
	vhost    string
	username string // "" when the URL gives none
	password string
}

// address is host:port.
func (e endpoint) address() string { return net.JoinHostPort(e.host, strconv.Itoa(e.port)) }

// errURL is all that is said about a URL that does not parse: the parser's own words repeat the password.
var errURL = errors.New("is not a valid URL like amqp://user:password@host:5672/vhost: percent-encode special characters in the user name, password and vhost, or use RABBITMQ_USERNAME and RABBITMQ_PASSWORD, which are taken as they are")

// errRepeatedLogin is a list of whole URLs where one URL with a list of hosts belongs.
var errRepeatedLogin = errors.New("gives the user more than once: write user and password once, before the first host, like amqp://user:password@one:5672,two:5672/vhost (a comma or @ in them is percent-encoded)")

// parseBrokerURL reads an AMQP URL whose authority may list several hosts, comma-separated
// (https://www.rabbitmq.com/docs/uri-spec).
func parseBrokerURL(raw string) ([]endpoint, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || (scheme != "amqp" && scheme != "amqps") {
		return nil, errors.New("must begin with amqp:// or amqps://")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(path, "@") || strings.Contains(rest, "://") {
		return nil, errURL // an unescaped / or ? in the password: what looks like the host is a part of it
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	if strings.Count(user, "@") > 1 && strings.Contains(user, ",") {
		return nil, errRepeatedLogin
	}
	var all []endpoint
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse(scheme + "://" + user + strings.TrimSpace(host) + path)
		if err != nil || u.Fragment != "" || strings.Contains(path, " ") {
			return nil, errURL // an unescaped # ends a URL: what follows it would be cut off in silence
		}
		e, err := endpointOf(u)
		if err != nil {
			return nil, errURL
		}
		all = append(all, e)
	}
	return all, nil
}

// endpointOf fills in what the URL leaves out: localhost, the protocol's port, the vhost "/".
func endpointOf(u *url.URL) (endpoint, error) {
	e := endpoint{host: u.Hostname(), port: 5672, tls: u.Scheme == "amqps", vhost: strings.TrimPrefix(u.Path, "/")}
	if e.tls {
		e.port = 5671
	}
	if e.host == "" {
		e.host = "localhost"
	}
	if e.vhost == "" {
		e.vhost = "/"
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return endpoint{}, err
		}
		e.port = int(port)
	}
	e.username = u.User.Username()
	e.password, _ = u.User.Password()
	return e, nil
}
