package contract

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// tlsBench is a bench on a broker of its own that wants a client certificate and takes it for a login.
type tlsBench struct {
	*bench
	broker   *testkit.Broker
	client   *testkit.Client
	dir      string
	ours     *testkit.Authority // signed the broker's certificate, and the broker trusts it
	foreign  *testkit.Authority
	good     testkit.Certificate // of certificateUser
	settings env                 // that work
}

func startTLS(t *testing.T) (*testkit.Broker, *tlsBench) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the broker runs as another user
	b := &tlsBench{dir: dir}
	var err error
	b.ours, err = testkit.NewAuthority(dir, "ours")
	must(t, err)
	b.foreign, err = testkit.NewAuthority(dir, "foreign")
	must(t, err)
	server := b.issue(t, b.ours, testkit.Holder{Name: "server", Hosts: []string{"rabbit.example.com"}})
	b.good = b.issue(t, b.ours, testkit.Holder{Name: certificateUser})
	definitions, err := writeDefinitions()
	must(t, err)
	defer os.Remove(definitions)
	broker, err := testkit.StartBroker(t.Context(), testkit.BrokerOptions{ // which has a patience of its own
		TLS: true, Plugins: []string{"rabbitmq_auth_mechanism_ssl"},
		Config: []string{
			"load_definitions = " + definitions,
			"auth_mechanisms.1 = EXTERNAL", "auth_mechanisms.2 = PLAIN", "ssl_cert_login_from = common_name",
			"ssl_options.cacertfile = " + b.ours.File, "ssl_options.certfile = " + server.File, "ssl_options.keyfile = " + server.KeyFile,
			"ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = true",
		},
	})
	must(t, err)
	t.Cleanup(func() { must(t, broker.Close()) })
	return broker, b
}

func (b *tlsBench) issue(t *testing.T, by *testkit.Authority, h testkit.Holder) testkit.Certificate {
	t.Helper()
	c, err := by.Issue(h)
	must(t, err)
	return c
}

// on is a bench of one subtest: a queue and a service of its own.
func (b *tlsBench) on(t *testing.T, broker *testkit.Broker, client *testkit.Client) *tlsBench {
	t.Helper()
	queue := nameOf(t)
	must(t, client.DeclareSource(queue, nil))
	one := *b
	one.bench, one.broker, one.client = &bench{t: t, queue: queue, service: startService(t)}, broker, client
	one.settings = one.env().with(env{
		"RABBITMQ_URL": "amqps://" + broker.TLSAddr, "RABBITMQ_TLS_CA_FILE": b.ours.File,
		"RABBITMQ_TLS_CERT_FILE": b.good.File, "RABBITMQ_TLS_KEY_FILE": b.good.KeyFile,
	})
	return &one
}

// works sends one message through, and one to the dead letters.
func (b *tlsBench) works() {
	b.t.Helper()
	b.waitState("consuming")
	b.service.Behave(func(r testkit.Received) testkit.Action {
		if r.Key == "bad" {
			return testkit.Action{Status: 400}
		}
		return testkit.Action{}
	})
	must(b.t, b.client.PublishTo(within(b.t), b.queue, text("good", "body"), text("bad", "body")))
	b.waitOutcomes(map[string]float64{"done": 1, "dead_letter": 1})
}

// why is the reason in /status.
func (b *tlsBench) why() string {
	return b.waitStatus(func(status) bool { return true }).Queues[0].Consumer.Why
}

func TestTLS(t *testing.T) {
	t.Parallel()
	broker, base := startTLS(t)
	client, err := testkit.Dial(broker.URL)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	plain := broker.Addr
	withPassword := url.UserPassword(sidecarUser, sidecarPassword).String() + "@"
	expired := base.issue(t, base.ours, testkit.Holder{Name: "expired", Expired: true})
	stranger := base.issue(t, base.ours, testkit.Holder{Name: "nobody-knows-me"})
	foreign := base.issue(t, base.foreign, testkit.Holder{Name: "foreign-client"})

	t.Run("works", func(t *testing.T) {
		for name, settings := range map[string]env{
			"login by certificate":                     nil,
			"login by certificate, a user name given":  {"RABBITMQ_URL": "amqps://somebody@" + broker.TLSAddr},
			"login by password":                        {"RABBITMQ_URL": "amqps://" + withPassword + broker.TLSAddr},
			"login by password from its variable":      {"RABBITMQ_USERNAME": sidecarUser, "RABBITMQ_PASSWORD": sidecarPassword},
			"another name of the broker's certificate": {"RABBITMQ_TLS_SERVER_NAME": "rabbit.example.com"},
			"another host that is plain text":          {"RABBITMQ_URL": "amqps://" + plain + "," + broker.TLSAddr},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := base.on(t, broker, client)
				b.replica = launch(t, b.settings.with(settings))
				b.works()
			})
		}
	})
	t.Run("refused", func(t *testing.T) {
		for name, c := range map[string]struct {
			settings env
			why      string
			words    []string
		}{
			"the system's authorities": {env{"RABBITMQ_TLS_CA_FILE": ""}, "tls", []string{"unknown authority", "RABBITMQ_TLS_CA_FILE"}},
			"another authority":        {env{"RABBITMQ_TLS_CA_FILE": base.foreign.File}, "tls", []string{"unknown authority", "RABBITMQ_TLS_CA_FILE"}},
			"another name":             {env{"RABBITMQ_TLS_SERVER_NAME": "other.example.com"}, "tls", []string{"other.example.com", "RABBITMQ_TLS_SERVER_NAME"}},
			"no certificate": {
				env{"RABBITMQ_TLS_CERT_FILE": "", "RABBITMQ_TLS_KEY_FILE": "", "RABBITMQ_URL": "amqps://" + withPassword + broker.TLSAddr},
				"tls",
				[]string{"RABBITMQ_TLS_CERT_FILE"},
			},
			"expired certificate":              {env{"RABBITMQ_TLS_CERT_FILE": expired.File, "RABBITMQ_TLS_KEY_FILE": expired.KeyFile}, "tls", []string{"expired", "RABBITMQ_TLS_CERT_FILE"}},
			"certificate of another authority": {env{"RABBITMQ_TLS_CERT_FILE": foreign.File, "RABBITMQ_TLS_KEY_FILE": foreign.KeyFile}, "tls", []string{"RABBITMQ_TLS_CERT_FILE"}},
			"certificate of nobody":            {env{"RABBITMQ_TLS_CERT_FILE": stranger.File, "RABBITMQ_TLS_KEY_FILE": stranger.KeyFile}, "login-refused", []string{"EXTERNAL", "ssl_cert_login_from"}},
			"TLS on the plain port":            {env{"RABBITMQ_URL": "amqps://" + plain}, "tls", []string{"speaks no TLS", "amqp://"}},
			"plain text on the port for TLS": {
				env{"RABBITMQ_URL": "amqp://" + withPassword + broker.TLSAddr, "RABBITMQ_TLS_CA_FILE": "", "RABBITMQ_TLS_CERT_FILE": "", "RABBITMQ_TLS_KEY_FILE": ""},
				"network",
				[]string{"amqps://"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := base.on(t, broker, client)
				b.replica = launch(t, b.settings.with(c.settings))
				b.waitMissing(append(c.words, "consumer")...)
				if got := b.why(); got != c.why {
					t.Errorf("the reason is %q, want %q", got, c.why)
				}
			})
		}
	})
	t.Run("replaced on disk", func(t *testing.T) {
		b := base.on(t, broker, client)
		rotated := base.issue(t, base.foreign, testkit.Holder{Name: "rotated"})
		b.replica = launch(t, b.settings.with(env{"RABBITMQ_TLS_CERT_FILE": rotated.File, "RABBITMQ_TLS_KEY_FILE": rotated.KeyFile}))
		b.waitMissing("consumer", "RABBITMQ_TLS_CERT_FILE")
		replace := func(from testkit.Certificate) {
			t.Helper()
			for old, file := range map[string]string{rotated.File: from.File, rotated.KeyFile: from.KeyFile} {
				content, err := os.ReadFile(file)
				must(t, err)
				must(t, os.WriteFile(old, content, 0o644))
			}
		}
		replace(b.good)
		b.works()
		// Only a new connection reads the files, and one that finds none of use is a problem to wait for.
		must(t, os.Remove(rotated.File))
		closeConnections(t, broker)
		b.waitMissing("consumer", "RABBITMQ_TLS_CERT_FILE", "no such file")
		if got := b.why(); got != "settings" {
			t.Errorf("the reason is %q", got)
		}
		replace(b.good)
		b.waitState("consuming")
		if n := b.metrics().byLabel("rabbitonce_session_ends_total", b.queue, "why"); n["settings"] == 0 || n["tls"] == 0 || n["connection-closed"] != 1 {
			t.Errorf("session_ends_total: %v", n)
		}
	})
}

// closeConnections is what an operator does.
func closeConnections(t *testing.T, broker *testkit.Broker) {
	t.Helper()
	_, err := broker.Ctl(within(t), "close_all_connections", "--vhost", "/", "test")
	must(t, err)
}

// TestRotatedPassword: the file is read again at each connection, and one that cannot be read is waited for.
func TestRotatedPassword(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) { must(t, os.WriteFile(file, []byte(password+"\n"), 0o600)) }
	write(oddPasswords()["hash"])
	b.replica = launch(t, b.env().with(env{
		"RABBITMQ_URL": "amqp://" + passwordPrefix + "slash@" + shared.broker.Addr, "RABBITMQ_PASSWORD_FILE": file,
	}))
	b.waitMissing("consumer", "Login was refused", "RABBITMQ_PASSWORD")
	must(t, os.Remove(file))
	b.waitMissing("consumer", "RABBITMQ_PASSWORD_FILE", "no such file")
	write("")
	b.waitMissing("consumer", "RABBITMQ_PASSWORD: is missing")
	write(oddPasswords()["slash"])
	b.waitState("consuming")
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"done": 1})
	for why, n := range b.metrics().byLabel("rabbitonce_session_ends_total", b.queue, "why") {
		if known := why == "login-refused" || why == "settings"; known != (n > 0) {
			t.Errorf("session_ends_total: %s is %v", why, n)
		}
	}
	b.finish()
}
