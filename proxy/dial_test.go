package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/testkit"
)

func TestHostsAreTriedAtRandomAndThoseThatFailedLast(t *testing.T) {
	endpoints, err := parseBrokerURL("amqp://a,b,c")
	if err != nil {
		t.Fatal(err)
	}
	var hosts hostOrder
	firsts := map[string]int{}
	for range 300 {
		firsts[hosts.order(endpoints)[0].host]++
	}
	for _, host := range []string{"a", "b", "c"} {
		if firsts[host] < 30 {
			t.Errorf("%s was first %d times of 300", host, firsts[host])
		}
	}
	hosts.tried(endpoints[1], errors.New("down"))
	for range 50 {
		if got := hosts.order(endpoints); got[2].host != "b" || len(got) != 3 {
			t.Fatalf("b is down, and the order is %v", got)
		}
	}
	hosts.tried(endpoints[1], nil)
	for firsts["b"] = 0; firsts["b"] == 0; { // ends, in all likelihood, after a few rounds
		firsts[hosts.order(endpoints)[0].host]++
	}
}

// TestDialFailuresNameEachHost, and the reason is that of the host about which something can be done.
func TestDialFailuresNameEachHost(t *testing.T) {
	refused := trouble(endUnreachable, errors.New("connection refused"))
	login := brokerError(reply(403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."))
	for name, c := range map[string]struct {
		errs dialFailures
		want sessionEnd
	}{
		"none":               {nil, endUnreachable},
		"all down":           {dialFailures{refused, refused}, endUnreachable},
		"one refuses":        {dialFailures{refused, login}, endLoginRefused},
		"the other way":      {dialFailures{login, refused}, endLoginRefused},
		"a file is unusable": {dialFailures{trouble(endSettings, errors.New("no file"))}, endSettings},
	} {
		err := c.errs.trouble()
		if got := whyEnded(err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, one := range c.errs {
			if !strings.Contains(err.Error(), one.Error()) {
				t.Errorf("%s: %q is not in %q", name, one, err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", name, err)
		}
	}
}

// listen accepts connections, hands each to serve, and closes it.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer conn.Close(); serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}

// readAll is a server that takes everything in and says nothing.
func readAll(conn net.Conn) {
	buffer := make([]byte, 512)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func dialOnce(t *testing.T, cfg BrokerConfig, reach time.Duration) error {
	t.Helper()
	endpoints, err := parseBrokerURL(cfg.RabbitMQURL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{}
	conn, err := b.dialHost(context.Background(), &cfg, endpoints[0], forConsuming, reach)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// TestAHostThatSaysNothingIsLeft, in time for the others: on the plain port and in the handshake of TLS.
func TestAHostThatSaysNothingIsLeft(t *testing.T) {
	silent := listen(t, readAll)
	for scheme, want := range map[string]sessionEnd{"amqp": endNetwork, "amqps": endTLS} {
		began := time.Now()
		err := dialOnce(t, BrokerConfig{RabbitMQURL: dedup.Secret(scheme + "://" + silent)}, 100*time.Millisecond)
		if got := whyEnded(err); err == nil || got != want || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v (%v), want %v", scheme, err, got, want)
		}
		if took := time.Since(began); took > loginTimeout {
			t.Errorf("%s: took %v", scheme, took)
		}
	}
}

// TestShutdownEndsADial that would go on for long.
func TestShutdownEndsADial(t *testing.T) {
	reached := make(chan struct{}, 2)
	silent := listen(t, func(conn net.Conn) { reached <- struct{}{}; readAll(conn) })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-reached; cancel() }()
	b := &broker{config: func() (BrokerConfig, error) {
		return BrokerConfig{RabbitMQURL: dedup.Secret("amqp://" + silent + "," + silent)}, nil
	}}
	began := time.Now()
	if _, err := b.dial(ctx, forConsuming); err == nil {
		t.Error("no error")
	}
	if took := time.Since(began); took > reachTimeoutOfSeveral {
		t.Errorf("took %v", took)
	}
}

// TestTheBrokersCertificate: what is wrong with it is said with what to look at.
func TestTheBrokersCertificate(t *testing.T) {
	dir := t.TempDir()
	ours, err := testkit.NewAuthority(dir, "ours")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := testkit.NewAuthority(dir, "foreign")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		holder testkit.Holder
		cfg    BrokerConfig
		words  []string
	}{
		"expired":           {testkit.Holder{Name: "server", Expired: true}, BrokerConfig{RabbitMQTLSCAFile: ours.File}, []string{"expired", "the broker's certificate", "RABBITMQ_TLS_CA_FILE", "renew"}},
		"another authority": {testkit.Holder{Name: "server"}, BrokerConfig{RabbitMQTLSCAFile: foreign.File}, []string{"RABBITMQ_TLS_CA_FILE"}},
		"another name": {
			testkit.Holder{Name: "server", Hosts: []string{"a.example.com"}},
			BrokerConfig{RabbitMQTLSCAFile: ours.File, RabbitMQTLSServerName: "b.example.com"},
			[]string{"a.example.com", "not for b.example.com", "RABBITMQ_TLS_SERVER_NAME"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			certificate, err := ours.Issue(c.holder)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.LoadX509KeyPair(certificate.File, certificate.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			c.cfg.RabbitMQURL = dedup.Secret("amqps://" + listen(t, func(conn net.Conn) {
				_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
			}))
			err = dialOnce(t, c.cfg, time.Minute)
			if got := whyEnded(err); got != endTLS {
				t.Errorf("the reason is %v", got)
			}
			for _, w := range c.words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v does not say %q", err, w)
				}
			}
		})
	}
}

func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		url  string
		cfg  BrokerConfig
		want login
		err  string
	}{
		"nothing given":                    {"amqp://h", BrokerConfig{}, login{username: "guest", password: "guest"}, ""},
		"in the URL":                       {"amqp://u:p@h", BrokerConfig{}, login{username: "u", password: "p"}, ""},
		"variables win":                    {"amqp://u:p@h", BrokerConfig{RabbitMQUsername: "v", RabbitMQPassword: "q"}, login{username: "v", password: "q"}, ""},
		"the password alone wins":          {"amqp://u:p@h", BrokerConfig{RabbitMQPassword: "q"}, login{username: "u", password: "q"}, ""},
		"a password and no name":           {"amqp://h", BrokerConfig{RabbitMQPassword: "q"}, login{username: "guest", password: "q"}, ""},
		"a name and no password":           {"amqp://u@h", BrokerConfig{}, login{}, "RABBITMQ_PASSWORD"},
		"a name and an empty password":     {"amqp://u:@h", BrokerConfig{}, login{}, "RABBITMQ_PASSWORD"},
		"a certificate":                    {"amqps://h", BrokerConfig{RabbitMQTLSCertFile: "c"}, login{external: true}, ""},
		"a certificate and a name":         {"amqps://u@h", BrokerConfig{RabbitMQTLSCertFile: "c"}, login{external: true}, ""},
		"a certificate and a password":     {"amqps://u:p@h", BrokerConfig{RabbitMQTLSCertFile: "c"}, login{username: "u", password: "p"}, ""},
		"a certificate and one's variable": {"amqps://h", BrokerConfig{RabbitMQTLSCertFile: "c", RabbitMQPassword: "q"}, login{username: "guest", password: "q"}, ""},
	} {
		endpoints, err := parseBrokerURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.cfg.login(endpoints[0])
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// TestBrokerSettingsAreReadAgainAlone: a broken file of another setting keeps nobody from the broker.
func TestBrokerSettingsAreReadAgainAlone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	password, redis := write("password", "old\n"), write("redis", "redis://localhost")
	cfg, err := Load([]string{
		"RABBITMQ_URL=amqp://u@localhost/", "RABBITMQ_PASSWORD_FILE=" + password, "QUEUES=orders", "REDIS_URL_FILE=" + redis, "FORWARD_URL=http://localhost/",
	}, "test")
	if err != nil {
		t.Fatal(err)
	}
	write("password", "new\n")
	if err := os.Remove(redis); err != nil {
		t.Fatal(err)
	}
	b := newBroker(cfg)
	now, err := b.config()
	if err != nil || now.RabbitMQPassword.Reveal() != "new" {
		t.Errorf("read again: %v, %v", now, err)
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	_, err = b.dial(context.Background(), forConsuming)
	if whyEnded(err) != endSettings || !strings.Contains(err.Error(), "RABBITMQ_PASSWORD_FILE") {
		t.Errorf("without the file: %v", err)
	}
}

func TestParametersOfTheURLAreWarnedOf(t *testing.T) {
	cfg := loaded(t, "RABBITMQ_URL=amqp://localhost/?heartbeat=5")
	if len(cfg.Warnings) == 0 || !strings.HasPrefix(cfg.Warnings[0], "RABBITMQ_URL: ") {
		t.Errorf("warnings: %q", cfg.Warnings)
	}
	if more := loaded(t); len(more.Warnings) >= len(cfg.Warnings) {
		t.Errorf("warnings without parameters: %q", more.Warnings)
	}
}
