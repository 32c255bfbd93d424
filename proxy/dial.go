package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// reachTimeout is how long a host has to accept a connection, and once more to say its first word.
	reachTimeout = 10 * time.Second
	// reachTimeoutOfSeveral is the same when there are other hosts to try.
	reachTimeoutOfSeveral = 3 * time.Second
	// loginTimeout bounds the rest of the handshake: a broker may ask others about a user.
	loginTimeout = 10 * time.Second
	// heartbeat is the interval asked of the broker, and how long it may be silent.
	heartbeat = 10 * time.Second
	// closeTimeout bounds an orderly close; a peer that does not answer is left.
	closeTimeout = 500 * time.Millisecond
)

// purpose is what a connection is for, as the broker's list of connections shows it.
type purpose string

const (
	forConsuming  purpose = "consumer"
	forPublishing purpose = "publisher"
)

// dial opens a connection to the first host that takes one.
func (b *broker) dial(ctx context.Context, why purpose) (*connection, error) {
	cfg, err := b.config()
	if err != nil {
		return nil, trouble(endSettings, err)
	}
	endpoints, err := parseBrokerURL(cfg.RabbitMQURL.Reveal())
	if err != nil {
		return nil, trouble(endSettings, fmt.Errorf("RABBITMQ_URL: %w", err))
	}
	reach := reachTimeout
	if len(endpoints) > 1 {
		reach = reachTimeoutOfSeveral
	}
	var failures dialFailures
	for _, e := range b.hosts.order(endpoints) {
		conn, err := b.dialHost(ctx, &cfg, e, why, reach)
		b.hosts.tried(e, err)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", e.address(), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failures.trouble()
}

// dialBroker opens a connection to an address of a broker, which has so long to take it.
type dialBroker func(ctx context.Context, address string, limit time.Duration) (net.Conn, error)

func dialTCP(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
	return (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", address)
}

// dialHost connects to one host and logs in.
func (b *broker) dialHost(ctx context.Context, cfg *BrokerConfig, e endpoint, why purpose, reach time.Duration) (*connection, error) {
	who, err := cfg.login(e)
	if err != nil {
		return nil, trouble(endSettings, err)
	}
	connect := b.connect
	if connect == nil {
		connect = dialTCP
	}
	raw, err := connect(ctx, e.address(), reach)
	if err != nil {
		return nil, trouble(endUnreachable, err)
	}
	watched := &watchedConn{Conn: raw, patience: heartbeat, writes: why == forConsuming}
	watched.greeted = func() { _ = watched.SetDeadline(time.Now().Add(loginTimeout)) }
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // ends a handshake that shutdown interrupts
	defer stop()
	_ = watched.SetDeadline(time.Now().Add(reach))
	conn, err := b.handshake(ctx, cfg, watched, e, who, why)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

func (b *broker) handshake(ctx context.Context, cfg *BrokerConfig, plain net.Conn, e endpoint, who login, why purpose) (*connection, error) {
	conn := plain
	if e.tls {
		var err error
		if conn, err = secure(ctx, cfg, plain, e.address()); err != nil {
			return nil, err
		}
	}
	if why != forPublishing {
		conn = newLongLongConn(conn)
	}
	opened, err := openConnection(conn, e.vhost, who, "rabbitonce "+string(why), b.version)
	if err != nil {
		return nil, loginError(err, who, e.tls)
	}
	return opened, nil
}

// loginError says what is wrong with a handshake. The library takes every loss of the connection in the handshake for
// a refusal; a broker that refuses says so, since it is asked to (see wordedAuth).
func loginError(err error, who login, overTLS bool) error {
	e, ok := errors.AsType[*closing](err)
	switch {
	case !ok && overTLS:
		return trouble(endTLS, fmt.Errorf("connection lost before the login: %w%s", err, silentRefusal))
	case !ok:
		return trouble(endNetwork, fmt.Errorf("connection lost before the login: %w", err))
	case isNoMechanism(e) && who.external:
		t := trouble(endLoginRefused, errors.New("the broker does not offer a login by certificate (EXTERNAL)"))
		t.remedy = "enable its plugin rabbitmq_auth_mechanism_ssl and auth_mechanisms, or give RABBITMQ_PASSWORD"
		return t
	case isNoMechanism(e):
		t := trouble(endLoginRefused, errors.New("the broker does not offer a login by password (PLAIN)"))
		t.remedy = "allow it in its auth_mechanisms, or give a client certificate and no password"
		return t
	case !e.Server && e.Code == accessRefused:
		return trouble(endNetwork, errors.New("connection lost during the login"))
	case !e.Server && alertRemedy(e.Reason) != "":
		return trouble(endTLS, errors.New(e.Reason+alertRemedy(e.Reason)))
	case !e.Server && overTLS:
		return trouble(endTLS, fmt.Errorf("connection lost before the login: %s%s", e.Reason, silentRefusal))
	case !e.Server:
		return trouble(endNetwork, fmt.Errorf("connection lost before the login: %s; is this the port of AMQP, and does it want TLS (amqps://)?", e.Reason))
	}
	said := brokerError(err)
	if t, ok := errors.AsType[*brokerTrouble](said); ok && who.external && t.why == endLoginRefused {
		t.remedy = "is the name in RABBITMQ_TLS_CERT_FILE that of a user? The broker's ssl_cert_login_from says which name counts"
	}
	return said
}

// dialFailures is an error for each host.
type dialFailures []error

// trouble is one error that names all hosts. Its reason is the first that is not just an unreachable host: that one a
// person has to do something about.
func (f dialFailures) trouble() error {
	why, words := endUnreachable, make([]string, len(f))
	for i, err := range f {
		words[i] = err.Error()
		if end := whyEnded(err); why == endUnreachable {
			why = end
		}
	}
	t := &brokerTrouble{why: why, err: errors.New(strings.Join(words, ", "))}
	for _, err := range f {
		if one, ok := errors.AsType[*brokerTrouble](err); ok && t.refused == nil {
			t.refused = one.refused
		}
	}
	return t
}

// hostOrder is in which order the hosts are tried: at random, so that not all replicas sit on one, and those that
// failed last time after the others. Safe for concurrent use.
type hostOrder struct {
	mu     sync.Mutex
	failed map[string]bool
}

func (o *hostOrder) order(endpoints []endpoint) []endpoint {
	o.mu.Lock()
	defer o.mu.Unlock()
	var good, bad []endpoint
	for _, i := range rand.Perm(len(endpoints)) {
		if e := endpoints[i]; o.failed[e.address()] {
			bad = append(bad, e)
		} else {
			good = append(good, e)
		}
	}
	return slices.Concat(good, bad)
}

func (o *hostOrder) tried(e endpoint, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = map[string]bool{}
	}
	o.failed[e.address()] = err != nil
}
