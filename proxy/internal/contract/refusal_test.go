package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plausible is an environment without a mistake. Nothing listens at its addresses: it is for replicas that never get so far.
func plausible() env {
	return env{
		"RABBITMQ_URL": "amqp://127.0.0.1:1", "REDIS_URL": "redis://127.0.0.1:1", "QUEUES": "orders", "FORWARD_URL": "http://127.0.0.1:1/messages",
	}
}

// TestRefusals starts the program with mistakes: exit code 2, and one message that names each variable that is wrong and no other.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings env
		names    []string // the variables that the lines of the message begin with
		words    []string // what else it says
	}{
		"nothing set": {
			env{"RABBITMQ_URL": "", "REDIS_URL": "", "QUEUES": "", "FORWARD_URL": ""},
			[]string{"RABBITMQ_URL", "REDIS_URL", "QUEUES", "FORWARD_URL"},
			nil,
		},
		"no Redis":             {env{"REDIS_URL": ""}, []string{"REDIS_URL"}, []string{"required", "DEDUP_STORE=memory"}},
		"no broker":            {env{"RABBITMQ_URL": ""}, []string{"RABBITMQ_URL"}, []string{"required"}},
		"no service":           {env{"FORWARD_URL": ""}, []string{"FORWARD_URL"}, nil},
		"no queues":            {env{"QUEUES": " , "}, []string{"QUEUES"}, []string{"required"}},
		"duration, no unit":    {env{"FORWARD_TIMEOUT": "30"}, []string{"FORWARD_TIMEOUT"}, []string{"30", "unit", "30s"}},
		"no duration":          {env{"DEDUP_LEASE": "soon"}, []string{"DEDUP_LEASE"}, []string{"soon", "30s"}},
		"ladder without units": {env{"RETRY_BACKOFF": "1,5,30"}, []string{"RETRY_BACKOFF"}, []string{"unit"}},
		"three at once": {
			env{"FORWARD_TIMEOUT": "30", "DEDUP_ON_MISSING_ID": "drop", "RETRY_MAX_ATTEMPTS": "many"},
			[]string{"FORWARD_TIMEOUT", "DEDUP_ON_MISSING_ID", "RETRY_MAX_ATTEMPTS"},
			[]string{"drop", "many"},
		},
		"unknown placeholder":      {env{"FORWARD_URL": "http://127.0.0.1:1/{tenant}"}, []string{"FORWARD_URL"}, []string{"{tenant}", "{queue}"}},
		"placeholder in host":      {env{"FORWARD_URL": "http://{queue}/"}, []string{"FORWARD_URL"}, nil},
		"dots in path":             {env{"FORWARD_URL": "http://127.0.0.1:1/a/../b"}, []string{"FORWARD_URL"}, nil},
		"dots as queue":            {env{"FORWARD_URL": "http://127.0.0.1:1/{queue}", "QUEUES": ".."}, []string{"FORWARD_URL"}, nil},
		"other schemes":            {env{"FORWARD_URL": "ftp://127.0.0.1/", "RABBITMQ_URL": "http://127.0.0.1", "REDIS_URL": "memcached://127.0.0.1"}, []string{"FORWARD_URL", "RABBITMQ_URL", "REDIS_URL"}, nil},
		"retention too short":      {env{"DEDUP_RETENTION": "24h"}, []string{"DEDUP_RETENTION"}, []string{"RETRY_MAX_AGE", "DEDUP_LEASE", "24h10m30s"}},
		"policies":                 {env{"DEDUP_ON_CONFLICT": "ignore", "FORWARD_ON_UNKNOWN": "maybe", "DEDUP_STORE": "postgres"}, []string{"DEDUP_ON_CONFLICT", "FORWARD_ON_UNKNOWN", "DEDUP_STORE"}, nil},
		"ID from nowhere":          {env{"DEDUP_ID_FROM": "message_id,json:id,header:"}, []string{"DEDUP_ID_FROM", "DEDUP_ID_FROM", "DEDUP_ID_FROM"}, []string{"message_id", "json:id"}},
		"authority is no file":     {env{"RABBITMQ_TLS_CA_FILE": "/no/such/file", "RABBITMQ_URL": "amqps://127.0.0.1:1"}, []string{"RABBITMQ_TLS_CA_FILE"}, []string{"/no/such/file"}},
		"authority is no PEM":      {env{"RABBITMQ_TLS_CA_FILE": "/dev/null", "RABBITMQ_URL": "amqps://127.0.0.1:1"}, []string{"RABBITMQ_TLS_CA_FILE"}, []string{"PEM"}},
		"certificate, no key":      {env{"RABBITMQ_TLS_CERT_FILE": "/dev/null", "RABBITMQ_URL": "amqps://127.0.0.1:1"}, []string{"RABBITMQ_TLS_CERT_FILE"}, []string{"RABBITMQ_TLS_KEY_FILE"}},
		"key, no certificate":      {env{"RABBITMQ_TLS_KEY_FILE": "/dev/null", "RABBITMQ_URL": "amqps://127.0.0.1:1"}, []string{"RABBITMQ_TLS_KEY_FILE"}, []string{"RABBITMQ_TLS_CERT_FILE"}},
		"TLS settings, no TLS":     {env{"RABBITMQ_TLS_SERVER_NAME": "rabbit"}, []string{"RABBITMQ_TLS_SERVER_NAME"}, []string{"amqps://"}},
		"user without password":    {env{"RABBITMQ_USERNAME": "orders"}, []string{"RABBITMQ_PASSWORD"}, []string{"missing"}},
		"declare what":             {env{"RABBITMQ_DECLARE": "quorum"}, []string{"RABBITMQ_DECLARE"}, []string{"true nor false"}},
		"numbers":                  {env{"PREFETCH": "-1", "FORWARD_CONCURRENCY": "0", "FORWARD_UNKNOWN_MAX": "-1"}, []string{"PREFETCH", "FORWARD_CONCURRENCY", "FORWARD_UNKNOWN_MAX"}, nil},
		"logs":                     {env{"LOG_LEVEL": "loud", "LOG_FORMAT": "xml"}, []string{"LOG_LEVEL", "LOG_FORMAT"}, []string{"loud", "xml"}},
		"grace too short":          {env{"SHUTDOWN_GRACE": "10ms"}, []string{"SHUTDOWN_GRACE"}, nil},
		"lease too short":          {env{"DEDUP_LEASE": "10ms"}, []string{"DEDUP_LEASE"}, nil},
		"one consumer, two queues": {env{"QUEUES": "orders,bills", "DEDUP_CONSUMER": "shop"}, []string{"DEDUP_CONSUMER"}, []string{"orders", "bills"}},
		"two queues, one name":     {env{"QUEUES": "orders.eu,orders-eu"}, []string{"QUEUES"}, []string{"orders.eu", "orders-eu", "QUEUE_ORDERS_EU_"}},
		"a queue twice":            {env{"QUEUES": "orders,orders"}, []string{"QUEUES"}, []string{"twice"}},
		"letters to themselves":    {env{"DEADLETTER_QUEUE": "{queue}"}, []string{"DEADLETTER_QUEUE"}, []string{"orders"}},
		"one queue's mistake": {
			env{"QUEUES": "orders,bills", "QUEUE_ORDERS_FORWARD_TIMEOUT": "30", "QUEUE_BILLS_FORWARD_URL": "http://x/{y}"},
			[]string{"QUEUE_ORDERS_FORWARD_TIMEOUT", "QUEUE_BILLS_FORWARD_URL"},
			nil,
		},
		"process-wide":     {env{"QUEUE_ORDERS_LOG_LEVEL": "debug"}, []string{"QUEUE_ORDERS_LOG_LEVEL"}, []string{"whole process"}},
		"no such file":     {env{"REDIS_PASSWORD_FILE": "/no/such/file"}, []string{"REDIS_PASSWORD_FILE"}, []string{"/no/such/file"}},
		"value and file":   {env{"REDIS_PASSWORD": "a", "REDIS_PASSWORD_FILE": "/dev/null"}, []string{"REDIS_PASSWORD"}, []string{"REDIS_PASSWORD_FILE"}},
		"the prefixed one": {env{"RABBITONCE_FORWARD_TIMEOUT": "30", "FORWARD_TIMEOUT": "30s"}, []string{"RABBITONCE_FORWARD_TIMEOUT"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, output := execute(t, plausible().with(c.settings))
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if diff := cmp.Diff(c.names, namedVariables(output), sorted()); diff != "" {
				t.Errorf("variables (-want +got):\n%s\noutput:\n%s", diff, output)
			}
			for _, w := range c.words {
				if !strings.Contains(output, w) {
					t.Errorf("the message does not say %q:\n%s", w, output)
				}
			}
		})
	}
}

var problemLine = regexp.MustCompile(`(?m)^  ([A-Z_]+)`)

// namedVariables are the names that the lines of the message begin with.
func namedVariables(output string) []string {
	var names []string
	for _, m := range problemLine.FindAllStringSubmatch(output, -1) {
		names = append(names, m[1])
	}
	return names
}

// TestUnsupportedVariables: a setting that somebody relies on is refused while it does nothing, wherever it comes from.
func TestUnsupportedVariables(t *testing.T) {
	t.Parallel()
	settings := env{
		"READY_REQUIRES": "broker", "ADMIN_ADDR": "127.0.0.1:0", "ADMIN_TOKEN_FILE": "/token",
		"QUEUE_ORDERS_HEALTH_DRAIN": "true", "RABBITONCE_HEALTH_DRAIN": "true",
	}
	code, output := execute(t, plausible().with(settings))
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if diff := cmp.Diff(sortedNames(settings), namedVariables(output), sorted()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if n := strings.Count(output, "not supported by this version"); n != len(settings) {
		t.Errorf("%d of %d lines say that the variable is not supported yet:\n%s", n, len(settings), output)
	}
}

// TestSecretsInMistakes: passwords that were not escaped make URLs that cannot be read; no part of them is shown.
func TestSecretsInMistakes(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"#", "?", "%", "/", " ", "\t", "\"", "<", "\x7f", "[", "ß", "%zz", "/#?", "://", "{x}"} {
		password := "Kplugh" + between + "Kxyzzy"
		t.Run(password, func(t *testing.T) {
			t.Parallel()
			code, output := execute(t, plausible().with(env{
				"RABBITMQ_URL": "amqp://user:" + password + "@127.0.0.1:1/", "REDIS_URL": "redis://user:" + password + "@127.0.0.1:1/0",
				"FORWARD_URL": "http://user:" + password + "@127.0.0.1:1/messages",
			}))
			if code != 2 || !slices.Contains(namedVariables(output), "RABBITMQ_URL") {
				t.Errorf("exit code %d:\n%s", code, output)
			}
			for _, part := range []string{"plugh", "xyzzy"} {
				if strings.Contains(output, part) {
					t.Errorf("the message shows a part of the password:\n%s", output)
				}
			}
		})
	}
	// Read as host 1 and port 23 if nobody takes care.
	t.Run("that look like a port", func(t *testing.T) {
		t.Parallel()
		for _, variable := range []string{"RABBITMQ_URL", "REDIS_URL"} { // an @ in the path of an HTTP URL is nothing odd
			scheme, _, _ := strings.Cut(plausible()[variable], ":")
			code, output := execute(t, plausible().with(env{variable: scheme + "://user:4711/Kplugh@127.0.0.1:1/messages", "LOG_LEVEL": "loud"}))
			if code != 2 || strings.Contains(output, "plugh") || strings.Contains(output, "4711") {
				t.Errorf("%s: exit code %d:\n%s", variable, code, output)
			}
			if !slices.Contains(namedVariables(output), variable) {
				t.Errorf("%s is taken for a URL without a password:\n%s", variable, output)
			}
		}
	})
}

// TestStrayVariables warns of names that look like ours, and not of those that Kubernetes makes of services called redis or rabbitmq.
func TestStrayVariables(t *testing.T) {
	t.Parallel()
	misspelt := env{
		"DEDUP_RETENTIONS": "1", "RABBITMQ_ULR": "1", "FORWARD_TIME_OUT": "1", "RETRY_ATTEMPTS": "1", "REDIS_PASSWRD": "Kx8#redis/pw%", "DEADLETTERS_QUEUE": "1",
		"SHUTDOWN_GRACE_PERIOD": "1", "QUEUE_ORDRES_PREFETCH": "1", "RABBITONCE_QUEUE": "1", "DEDUP_ID_FORM": "1",
	}
	innocent := env{
		"RABBITMQ_PORT_5672_TCP": "tcp://10.0.0.1:5672", "RABBITMQ_PORT_5672_TCP_ADDR": "10.0.0.1", "RABBITMQ_PORT": "tcp://10.0.0.1:5672",
		"RABBITMQ_SERVICE_HOST": "10.0.0.1", "RABBITMQ_SERVICE_PORT_AMQP": "5672", "REDIS_SERVICE_HOST": "10.0.0.1", "REDIS_SERVICE_PORT": "6379",
		"REDIS_PORT_6379_TCP_PROTO": "tcp", "HEALTH_SERVICE_HOST": "10.0.0.1", "DATABASE_URL": "1", "MY_DEDUP_LEASE": "1",
		"RABBITONCE_PORT_8085_TCP": "1", "RABBITONCE_SERVICE_HOST": "10.0.0.1",
		// Values that mean "off" are no request for what is not there yet.
		"DEDUP_MODE": "enforce", "ORDERING": "none", "DEADLETTER_MODE": "queue", "RABBITMQ_DECLARE": "false", "HEALTH_DRAIN": "false",
	}
	b := idleBench(t)
	b.replica = launch(t, b.env().with(misspelt).with(innocent))
	b.waitState("consuming")
	b.finish()
	warned := map[string]bool{}
	for _, w := range b.warnings() {
		for name := range misspelt.with(innocent) {
			if regexp.MustCompile(`\b` + name + `\b`).MatchString(w) {
				warned[name] = true
			}
		}
	}
	delete(misspelt, "DEADLETTERS_QUEUE") // no prefix of ours
	if diff := cmp.Diff(sortedNames(misspelt), sortedNames(warned), sorted()); diff != "" {
		t.Errorf("variables warned of (-want +got):\n%s", diff)
	}
}
