package proxy

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func loaded(t *testing.T, settings ...string) *Config {
	t.Helper()
	cfg, err := Load(append([]string{
		"RABBITMQ_URL=amqp://localhost/", "QUEUES=orders", "DEDUP_STORE=memory", "FORWARD_URL=http://localhost/",
	}, settings...), "test")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestPermissionsCommand(t *testing.T) {
	for name, c := range map[string]struct {
		settings    []string
		vhost, user string
		want        string
	}{
		"the defaults": {
			nil, "/", "sidecar",
			`rabbitmqctl set_permissions -p / sidecar '^(orders\.dead|orders\.wait\.5s|orders\.wait\.30s|orders\.wait\.2m|orders\.wait\.10m)$' '^amq\.default$' '^(orders|orders\.wait\.5s|orders\.wait\.30s|orders\.wait\.2m|orders\.wait\.10m)$'`,
		},
		"everything declared": {
			[]string{"RABBITMQ_DECLARE=true", "RETRY_BACKOFF=1s"},
			"shop/eu", "sidecar",
			`rabbitmqctl set_permissions -p shop/eu sidecar '^(orders|orders\.dead|orders\.wait\.5s|orders\.wait\.30s)$' '^amq\.default$' '^(orders|orders\.wait\.5s|orders\.wait\.30s)$'`,
		},
		"several queues, one dead-letter queue": {
			[]string{"QUEUES=a,b", "DEADLETTER_QUEUE=graveyard", "RETRY_BACKOFF=1s"},
			"/", "sidecar",
			`rabbitmqctl set_permissions -p / sidecar '^(graveyard|a\.wait\.5s|a\.wait\.30s|b\.wait\.5s|b\.wait\.30s)$' '^amq\.default$' '^(a|a\.wait\.5s|a\.wait\.30s|b|b\.wait\.5s|b\.wait\.30s)$'`,
		},
		"names that a shell or a pattern would read": {
			[]string{"QUEUES=o'r+$(x)", "DEADLETTER_QUEUE=d", "RETRY_BACKOFF=1s"},
			"my vhost", "it's me",
			`rabbitmqctl set_permissions -p 'my vhost' 'it'\''s me' '^(d|o'\''r\+\$\(x\)\.wait\.5s|o'\''r\+\$\(x\)\.wait\.30s)$' '^amq\.default$' '^(o'\''r\+\$\(x\)|o'\''r\+\$\(x\)\.wait\.5s|o'\''r\+\$\(x\)\.wait\.30s)$'`,
		},
	} {
		if got := neededGrants(loaded(t, c.settings...)).command(c.vhost, c.user); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestConfigurationPageShowsThePermissions: the line there is the one that is said.
func TestConfigurationPageShowsThePermissions(t *testing.T) {
	want := neededGrants(loaded(t)).command("shop", "orders-sidecar")
	page := strings.ReplaceAll(pageSection(t, "docs/configuration.md", "### Permissions on the broker"), "\\\n  ", "")
	if !strings.Contains(page, want) {
		t.Errorf("the page does not show\n%s", want)
	}
}

func TestPatternMatchesItsNamesOnly(t *testing.T) {
	names := []string{"orders", "orders.dead", "a|b", `back\slash`, "ümlaut"}
	p := regexp.MustCompile(pattern(names))
	for _, name := range names {
		if !p.MatchString(name) {
			t.Errorf("%s does not match %s", p, name)
		}
	}
	for _, name := range []string{"", "order", "orders2", "ordersXdead", "a", "b", "xorders"} {
		if p.MatchString(name) {
			t.Errorf("%s matches %s", p, name)
		}
	}
	if nothing := regexp.MustCompile(pattern(nil)); nothing.MatchString("orders") {
		t.Errorf("%s, for no name, matches one", nothing)
	}
}

func TestRefusalNamesThePattern(t *testing.T) {
	for _, c := range []struct {
		code   int
		words  string
		needed access
		want   string
	}{
		{403, "ACCESS_REFUSED - access to queue 'orders.eu' in vhost '/' refused for user 'u'", accessRead, `grant the user u in the vhost /: read ^orders\.eu$`},
		{403, "ACCESS_REFUSED - access to queue 'orders.dead' in vhost 'a/b' refused for user 'u'", accessConfigure, `in the vhost a/b: configure ^orders\.dead$`},
		{403, "ACCESS_REFUSED - read access to queue 'w' in vhost '/' refused for user 'u'", accessOfWaitQueue, `: read ^w$`},
		{403, "ACCESS_REFUSED - configure access to queue 'w' in vhost '/' refused for user 'u'", accessOfWaitQueue, `: configure and read ^w$`},
		{403, "ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user 'u'", accessRead, `: read ^q$`},
		{403, "ACCESS_REFUSED - access to queue 'w' in vhost '/' refused for user 'u'", accessOfWaitQueue, `: configure and read ^w$`},
		{403, "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'", "", `: write ^amq\.default$`},
		{403, "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'", accessOfWaitQueue, `: write ^amq\.default$`},
		{403, "ACCESS_REFUSED - access to queue 'it's 'q'' in vhost '/' refused for user 'o'neil'", accessRead, `grant the user o'neil in the vhost /: read ^it's 'q'$`},
		{530, "NOT_ALLOWED - access to vhost '/' refused for user 'u'", "", `the user u has no permissions in the vhost /`},
	} {
		err := neededGrants(loaded(t)).advise(brokerErrorOn(c.needed, reply(c.code, c.words)))
		if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s:\n got %v\nwant %s", c.words, err, c.want)
		}
		if !strings.Contains(err.Error(), "rabbitmqctl set_permissions -p ") || whyEnded(err) != endPermission {
			t.Errorf("%s: no command, or no reason: %v", c.words, err)
		}
	}
	if err := errors.New("anything"); (grants{}).advise(err) != err {
		t.Error("an error about something else was changed")
	}
}
