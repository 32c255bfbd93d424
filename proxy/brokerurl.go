package proxy

import (
	"errors"
	"net/url"
	"strings"
)

// errURL is all that is said about a URL that does not parse: the parser's own words repeat the password.
var errURL = errors.New("is not a valid URL like amqp://user:password@host:5672/vhost: percent-encode special characters in the user name, password and vhost, or use RABBITMQ_USERNAME and RABBITMQ_PASSWORD, which are taken as they are")

// parseBrokerURL reads an AMQP URL whose authority may list several hosts, comma-separated.
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
	var all []endpoint
	for host := range strings.SplitSeq(hosts, ",") {
		uri, err := parseEndpoint(scheme + "://" + user + strings.TrimSpace(host) + path)
		if err != nil {
			return nil, errURL
		}
		if u, err := url.Parse(scheme + "://" + user + strings.TrimSpace(host) + path); err != nil || u.Fragment != "" {
			return nil, errURL // an unescaped # ends a URL: what follows it would be cut off in silence
		}
		all = append(all, uri)
	}
	return all, nil
}
