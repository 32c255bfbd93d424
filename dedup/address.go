package dedup

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// splitHosts takes the hosts out of a URL that may name several, as in
// redis://user:password@one:6379,two:6379/0. It returns the URL with the first
// host alone, which net/url can read, and all hosts as they are written.
func splitHosts(text string) (first string, hosts []string) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || scheme == "unix" {
		return text, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1 // 0 without a user
	hosts = strings.Split(rest[begin:end], ",")
	return scheme + "://" + rest[:begin] + hosts[0] + rest[end:], hosts
}

// withPort returns host:port, with the port that is usual when the host names
// none.
func withPort(host, usual string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), usual)
}

// checkRedisURL names what is wrong without showing any part of the URL: a
// password with unescaped characters may have ended up in any of them, and
// the errors of net/url quote their input.
func checkRedisURL(text string) error {
	const form = "redis://host:6379/0, rediss:// for TLS, or unix:///path/to.sock"
	if text == "" {
		return errors.New("is required unless DEDUP_STORE=memory; write " + form)
	}
	first, hosts := splitHosts(text)
	u, err := url.Parse(first)
	switch {
	case err != nil:
		return errors.New("is not a URL; write " + form +
			", and give a password with special characters in REDIS_PASSWORD")
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return errors.New("has no scheme that is known here; write " + form)
	case u.Scheme == "unix" && u.Path == "":
		return errors.New("names no socket; write unix:///path/to.sock")
	case u.Fragment != "" || strings.Contains(u.Host, "@"):
		return errors.New("holds an unescaped # or @; percent-encode the password or give it in REDIS_PASSWORD")
	case u.Scheme != "unix" && u.Host == "":
		return errors.New("names no host; write " + form)
	}
	for _, host := range hosts {
		if other, err := url.Parse("redis://" + host); err != nil || other.Hostname() == "" || other.Host != host {
			return errors.New("names a host that is none; write one:6379,two:6379")
		}
	}
	if err := checkRedisOptions(first); err != nil {
		return errors.New("has a database or an option that is not known here; write " + form)
	}
	return nil
}
