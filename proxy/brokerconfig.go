package proxy

import (
	"errors"
	"fmt"
	"strings"

	"rabbitonce/dedup"
)

// BrokerConfig is how RabbitMQ is reached. All of it is read again at each dial, so that a password or a certificate
// can be replaced while the process runs.
type BrokerConfig struct {
	// RabbitMQURL is amqp(s)://user:password@host:port/vhost; several hosts, comma-separated, are tried in turn.
	// Required.
	RabbitMQURL dedup.Secret `env:"RABBITMQ_URL"`
	// RabbitMQUsername is taken verbatim and wins over the URL's. Default: from the URL.
	RabbitMQUsername string `env:"RABBITMQ_USERNAME"`
	// RabbitMQPassword is taken verbatim and wins over the URL's. Default: from the URL.
	RabbitMQPassword dedup.Secret `env:"RABBITMQ_PASSWORD"`
	// RabbitMQTLSCAFile holds the authorities (PEM) that the broker's certificate is checked against. Default: the
	// system's.
	RabbitMQTLSCAFile string `env:"RABBITMQ_TLS_CA_FILE"`
	// RabbitMQTLSCertFile holds our own certificate (PEM). Without a password it is the login too. Default: none.
	RabbitMQTLSCertFile string `env:"RABBITMQ_TLS_CERT_FILE"`
	// RabbitMQTLSKeyFile holds its private key (PEM). Default: none.
	RabbitMQTLSKeyFile string `env:"RABBITMQ_TLS_KEY_FILE"`
	// RabbitMQTLSServerName is the name that the broker's certificate must be for. Default: the host that is dialed.
	RabbitMQTLSServerName string `env:"RABBITMQ_TLS_SERVER_NAME"`
	// RabbitMQDeclare declares source queues that are missing, as durable quorum queues.
	RabbitMQDeclare bool `env:"RABBITMQ_DECLARE, default=false"`
}

// loadBroker reads the broker's variables alone.
func loadBroker(environ []string) (BrokerConfig, error) {
	env := newEnvironment(environ)
	var cfg BrokerConfig
	env.decode(&cfg)
	env.add(cfg.Validate())
	if len(env.problems) > 0 {
		return BrokerConfig{}, errors.New(strings.Join(env.problems, "; "))
	}
	return cfg, nil
}

// Validate returns every problem. Each text begins with a variable and shows no secret.
func (c *BrokerConfig) Validate() []error {
	if c.RabbitMQURL == "" {
		return append(c.tlsFiles().Check(), errors.New("RABBITMQ_URL: is required, like amqp://user:password@rabbitmq:5672/vhost"))
	}
	endpoints, err := parseBrokerURL(c.RabbitMQURL.Reveal())
	if err != nil {
		return append(c.tlsFiles().Check(), fmt.Errorf("RABBITMQ_URL: %w", err))
	}
	problems := c.tlsFiles().Check()
	if !endpoints[0].tls {
		problems = append(problems, c.uselessWithoutTLS()...)
	}
	if _, err := c.login(endpoints[0]); err != nil {
		problems = append(problems, err)
	}
	return problems
}

// uselessWithoutTLS is a problem for each TLS setting: somebody believes to be safe by it.
func (c *BrokerConfig) uselessWithoutTLS() []error {
	var problems []error
	for _, v := range []struct{ name, value string }{
		{"CA_FILE", c.RabbitMQTLSCAFile},
		{"CERT_FILE", c.RabbitMQTLSCertFile},
		{"KEY_FILE", c.RabbitMQTLSKeyFile},
		{"SERVER_NAME", c.RabbitMQTLSServerName},
	} {
		if v.value != "" {
			problems = append(problems, fmt.Errorf("RABBITMQ_TLS_%s: has no use without TLS; write amqps:// in RABBITMQ_URL", v.name))
		}
	}
	return problems
}

// warnings are what a person should know about a URL that can be used.
func (c *BrokerConfig) warnings() []string {
	if strings.Contains(c.RabbitMQURL.Reveal(), "?") {
		return []string{"RABBITMQ_URL: what stands after the ? is not read; for TLS there are variables, RABBITMQ_TLS_CA_FILE and others"}
	}
	return nil
}

// vhost is the same for all hosts.
func (c *BrokerConfig) vhost() string {
	endpoints, err := parseBrokerURL(c.RabbitMQURL.Reveal())
	if err != nil {
		return "/"
	}
	return endpoints[0].vhost
}

func (c *BrokerConfig) tlsFiles() *dedup.TLSFiles {
	return &dedup.TLSFiles{
		Variables: "RABBITMQ_TLS",
		CA:        c.RabbitMQTLSCAFile, Cert: c.RabbitMQTLSCertFile, Key: c.RabbitMQTLSKeyFile, ServerName: c.RabbitMQTLSServerName,
	}
}

// login is what the broker is told about who we are.
type login struct {
	external           bool // by the TLS certificate (https://www.rabbitmq.com/docs/access-control#mechanisms); nothing else counts then
	username, password string
}

// login takes user name and password from the variables, else from the URL. Without a password the client certificate
// is the login, if there is one; without a user name too it is guest, as for other clients.
func (c *BrokerConfig) login(e endpoint) (login, error) {
	l := login{username: e.username, password: e.password}
	if c.RabbitMQUsername != "" {
		l.username = c.RabbitMQUsername
	}
	if c.RabbitMQPassword != "" {
		l.password = c.RabbitMQPassword.Reveal()
	}
	switch {
	case l.password == "" && c.RabbitMQTLSCertFile != "":
		return login{external: true}, nil
	case l.password == "" && l.username == "":
		return login{username: "guest", password: "guest"}, nil
	case l.password == "":
		return login{}, errors.New("RABBITMQ_PASSWORD: is missing, and there is none in RABBITMQ_URL; a user name needs one, unless RABBITMQ_TLS_CERT_FILE is the login")
	case l.username == "":
		l.username = "guest"
	}
	return l, nil
}
