package contract

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// found is what `check --json` prints.
type found struct {
	Findings []struct{ Level, Subject, Message, Remedy string }
	Worst    string
}

// check runs the command with the bench's environment and other settings.
func (b *bench) check(settings env, args ...string) (code int, output string) {
	b.t.Helper()
	quiet := env{"SHUTDOWN_GRACE": "20s", "FORWARD_TIMEOUT": "10s", "RETRY_BACKOFF": "1s", "LOG_LEVEL": "info"}
	return execute(b.t, b.env().with(quiet).with(settings), append([]string{"check"}, args...)...)
}

// lines demands an exit code, and that there is a line for each of these: level, subject, and a word of the text.
func (b *bench) lines(settings env, want int, lines [][]string, args ...string) string {
	b.t.Helper()
	code, output := b.check(settings, args...)
	if code != want {
		b.t.Errorf("exit code %d, want %d:\n%s", code, want, output)
	}
	for _, l := range lines {
		if !hasLine(output, l) {
			b.t.Errorf("no line with %q:\n%s", l, output)
		}
	}
	return output
}

// hasLine tells whether a line begins with the first word and has all the others.
func hasLine(output string, words []string) bool {
	for line := range strings.Lines(output) {
		good := strings.HasPrefix(line, words[0])
		for _, w := range words[1:] {
			good = good && strings.Contains(line, w)
		}
		if good {
			return true
		}
	}
	return false
}

// sourceType is the type of this run's source queues.
func sourceType(t *testing.T) string {
	kind, err := testkit.SourceType()
	must(t, err)
	return kind
}

// TestCheckFindsAllWell and leaves everything as it was.
func TestCheckFindsAllWell(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	b.publish(text("one", "body"))
	product := "Redis " // what this run's store calls itself
	if strings.HasPrefix(os.Getenv("RABBITONCE_TEST_STORE"), "valkey") {
		product = "Valkey "
	}
	output := b.lines(nil, 0, [][]string{
		{"ok", "configuration", "1 queue(s): " + b.queue},
		{"ok", "broker " + shared.broker.Addr, "RabbitMQ ", "without TLS", "logged in as sidecar", "vhost /"},
		{"ok", "publishing"},
		{"ok", "queue " + b.queue, sourceType(t) + ", 1 message(s) ready, 0 consumer(s), durable"},
		{"ok", "dead letters " + b.queue + ".dead", "declared when"},
		{"ok", "wait queues of " + b.queue, b.queue + ".wait.30s (when first needed)"},
		{"info", "policies", "list_queues -p / name policy"},
		{"ok", "store", "takes claims"},
		{"ok", "store " + shared.redis.Addr, product, "master", "round trip"},
		{"warn", "store " + shared.redis.Addr, "appendonly yes"},
		{"ok", "service of " + b.queue, b.service.Addr, "takes connections"},
	})
	if strings.Contains(output, "FAIL") || strings.Contains(output, "permissions") {
		t.Errorf("something failed:\n%s", output)
	}
	for _, queue := range []string{b.queue + ".dead", b.queue + ".wait.30s"} {
		if there, err := shared.client.Exists(queue); there || err != nil {
			t.Errorf("%s was declared (%v)", queue, err)
		}
	}
	if left := b.records(); len(left) != 0 {
		t.Errorf("records are left: %q", left)
	}
	b.assertPosts(0)
	taken, err := shared.client.Take(within(t), b.queue, 1)
	must(t, err)
	if taken[0].Redelivered || taken[0].Headers["x-delivery-count"] != nil {
		t.Errorf("the message was handed out before: %v %v", taken[0].Redelivered, taken[0].Headers)
	}

	code, text := b.check(nil, "--json")
	var f found
	if err := json.Unmarshal([]byte(text), &f); err != nil || code != 0 || f.Worst != "warn" || len(f.Findings) < 8 || f.Findings[0].Subject != "configuration" {
		t.Errorf("exit code %d, %v, %+v:\n%s", code, err, f, text)
	}
}

// checkedUsers are users that each lack something that the queue TestCheckPermissions needs, by their names.
func checkedUsers() map[string]allowed {
	const queue = "TestCheckPermissions"
	least := allowed{`^` + queue + `\.(dead|wait\..*)$`, `^amq\.default$`, `^` + queue + `(\.wait\..*)?$`}
	users := map[string]allowed{}
	for name, without := range map[string]func(*allowed){
		"nothing":    func(*allowed) {},
		"reading":    func(a *allowed) { a.read = `^` + queue + `\.wait\..*$` },
		"letters":    func(a *allowed) { a.configure = `^` + queue + `\.wait\..*$` },
		"waiting":    func(a *allowed) { a.configure = `^` + queue + `\.dead$` },
		"returning":  func(a *allowed) { a.read = `^` + queue + `$` },
		"publishing": func(a *allowed) { a.write = "^$" },
		"everything": func(a *allowed) { *a = allowed{"^$", "^$", "^$"} },
	} {
		a := least
		without(&a)
		users["checked-"+name] = a
	}
	return users
}

// TestCheckPermissions names each permission that lacks, and the command that grants them all.
func TestCheckPermissions(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	grant := []string{"info", "permissions", "rabbitmqctl set_permissions -p / checked-"}
	dead, wait := `configure ^`+b.queue+`\.dead$`, `configure and read ^`+b.queue+`\.wait\.30s$`
	for name, lines := range map[string][][]string{
		"reading":    {{"FAIL", "queue " + b.queue, "grant the user checked-reading in the vhost /: read ^" + b.queue + "$"}, {"ok", "publishing"}, {"ok", "dead letters"}, grant},
		"letters":    {{"FAIL", "dead letters " + b.queue + ".dead", dead}, {"ok", "queue " + b.queue}, {"ok", "wait queues"}, grant},
		"waiting":    {{"FAIL", "wait queues of " + b.queue, wait}, {"ok", "dead letters"}, grant},
		"returning":  {{"FAIL", "wait queues of " + b.queue, `read ^` + b.queue + `\.wait\.30s$`}, {"ok", "dead letters"}, grant},
		"publishing": {{"FAIL", "publishing", `write ^amq\.default$`}, {"ok", "queue " + b.queue}, grant},
		"everything": {{"FAIL", "publishing"}, {"FAIL", "queue " + b.queue}, {"FAIL", "dead letters", dead}, {"FAIL", "wait queues", wait}, {"ok", "store"}, {"ok", "service"}, grant},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{t: t, queue: b.queue, service: startService(t)}
			b.lines(env{"RABBITMQ_URL": brokerURL("checked-"+name, sidecarPassword, shared.broker.Addr, "/")}, 1, lines)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		b := &bench{t: t, queue: b.queue, service: startService(t)}
		b.lines(env{"RABBITMQ_URL": brokerURL("checked-nothing", sidecarPassword, shared.broker.Addr, "/")}, 0, [][]string{
			{"ok", "publishing"},
			{"ok", "queue " + b.queue, sourceType(t)},
			{"ok", "dead letters"},
			{"ok", "wait queues"},
			{"info", "queue " + b.queue, "configure permission", "list_queues -p / name arguments"},
		})
	})
}

// TestCheckQueues tells what is wrong with each queue, and what could cost something.
func TestCheckQueues(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, queue: nameOf(t), service: startService(t)}
	name := func(kind string) string { return b.queue + "-" + kind }
	must(t, shared.client.DeclareQuorum(name("stream"), amqp.Table{"x-queue-type": "stream"}))
	must(t, shared.client.DeclareQuorum(name("low"), amqp.Table{"x-delivery-limit": 1, "x-dead-letter-exchange": "graveyard", "x-single-active-consumer": true}))
	must(t, shared.client.DeclareClassic(name("classic"), nil))
	must(t, shared.client.DeclareClassic(name("classic")+".dead", amqp.Table{"x-max-length": 10, "x-message-ttl": 60000}))
	must(t, shared.client.DeclareQuorum(name("classic")+".wait.30s", amqp.Table{"x-message-ttl": 31000}))
	names := []string{"missing", "stream", "low", "classic"}
	for i := range names {
		names[i] = name(names[i])
	}
	settings := env{"QUEUES": strings.Join(names, ",")}
	b.lines(settings, 1, [][]string{
		{"FAIL", "queue " + name("missing"), "NOT_FOUND", "is the name in QUEUES right"},
		{"FAIL", "queue " + name("stream"), "quorum or classic"},
		{"ok", "queue " + name("low"), "quorum, ", "x-dead-letter-exchange graveyard", "x-delivery-limit 1", "x-single-active-consumer true"},
		{"warn", "queue " + name("low"), "more than 1 time(s)", "x-delivery-limit to 2"},
		{"ok", "queue " + name("classic"), "classic, 0 message(s)"},
		{"ok", "dead letters " + name("classic") + ".dead", "is there"},
		{"warn", "dead letters " + name("classic") + ".dead", "oldest letters"},
		{"warn", "dead letters " + name("classic") + ".dead", "x-message-ttl"},
		{"FAIL", "wait queues of " + name("classic"), name("classic") + ".wait.30s was declared otherwise", "delete it when it is empty"},
		{"ok", "wait queues of " + name("low")},
	})
	b.lines(settings.with(env{"QUEUES": name("missing"), "RABBITMQ_DECLARE": "true"}), 0, [][]string{{"ok", "queue " + name("missing"), "RABBITMQ_DECLARE"}})
	if there, err := shared.client.Exists(name("missing")); there || err != nil {
		t.Errorf("the queue was declared (%v)", err)
	}
}

// TestCheckBroker tells each host's trouble; what does not depend on it is looked at all the same.
func TestCheckBroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   string
		code  int
		lines [][]string
	}{
		"unreachable":    {brokerURL(sidecarUser, sidecarPassword, nobody, "/"), 1, [][]string{{"FAIL", "broker " + nobody, "connection refused"}, {"info", "queues", "not looked at"}}},
		"one of two":     {brokerURL(sidecarUser, sidecarPassword, nobody+","+shared.broker.Addr, "/"), 1, [][]string{{"FAIL", "broker " + nobody}, {"ok", "broker " + shared.broker.Addr}, {"ok", "queue "}}},
		"wrong password": {brokerURL(sidecarUser, "wrong", shared.broker.Addr, "/"), 1, [][]string{{"FAIL", "broker " + shared.broker.Addr, "Login was refused", "RABBITMQ_PASSWORD"}}},
		"no such vhost":  {brokerURL(sidecarUser, sidecarPassword, shared.broker.Addr, "nowhere"), 1, [][]string{{"FAIL", "broker", "nowhere", "not found"}}},
		"not allowed":    {brokerURL(strangerUser, sidecarPassword, shared.broker.Addr, "/"), 1, [][]string{{"FAIL", "broker", "vhost", "stranger"}, {"info", "permissions", "set_permissions -p / stranger"}}},
		"another vhost":  {brokerURL(sidecarUser, sidecarPassword, shared.broker.Addr, slashVhost), 1, [][]string{{"ok", "broker", "vhost team/a"}, {"FAIL", "queue", "NOT_FOUND"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.lines(env{"RABBITMQ_URL": c.url}, c.code, append(c.lines, []string{"ok", "store", "takes claims"}, []string{"ok", "service"}))
		})
	}
}

// TestCheckIsBounded: a broker that takes connections and says nothing holds it up no longer than it was told.
func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	b := idleBench(t)
	began := time.Now()
	b.lines(env{"RABBITMQ_URL": "amqp://" + silent.Addr().String(), "REDIS_URL": "redis://" + silent.Addr().String()}, 1,
		[][]string{{"FAIL", "broker " + silent.Addr().String()}, {"FAIL", "store"}, {"ok", "service"}}, "--timeout", "1s")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestCheckStore tells what the server says, and what to do.
func TestCheckStore(t *testing.T) {
	t.Parallel()
	evicting, err := testkit.StartRedis(within(t), testkit.RedisOptions{Volatile: true, Args: []string{"--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"}})
	must(t, err)
	defer func() { must(t, evicting.Close()) }()
	must(t, shared.store.Do(within(t), "ACL", "SETUSER", "checked", "on", ">secret", "~*", "+ping", "+time").Err())
	for name, c := range map[string]struct {
		settings env
		args     []string
		code     int
		lines    [][]string
	}{
		"unreachable":    {env{"REDIS_URL": "redis://" + nobody}, nil, 1, [][]string{{"FAIL", "store", nobody, "connection refused"}}},
		"wrong password": {env{"REDIS_URL": storeURL("wrong")}, nil, 1, [][]string{{"FAIL", "store", "WRONGPASS", "REDIS_PASSWORD"}}},
		"no permission":  {env{"REDIS_URL": "redis://checked:secret@" + shared.redis.Addr}, nil, 1, [][]string{{"FAIL", "store", "NOPERM", "+evalsha"}, {"info", "store " + shared.redis.Addr, "+info"}}},
		"evicting":       {env{"REDIS_URL": evicting.URL}, nil, 0, [][]string{{"warn", "store " + evicting.Addr, "allkeys-lru", "noeviction"}, {"warn", "store", "appendonly"}}},
		"too small":      {env{"REDIS_URL": evicting.URL}, []string{"--rate", "10"}, 0, [][]string{{"warn", "store memory", "10 a second x DEDUP_RETENTION 48h", "= 345 MB", "maxmemory is 104 MB"}}},
		"forecast":       {nil, []string{"--rate", "0.5"}, 0, [][]string{{"info", "store memory", "0.5 a second", "= 17 MB"}}},
		"no replicas":    {env{"DEDUP_WAIT_REPLICAS": "1"}, nil, 1, [][]string{{"FAIL", "store", "0 of DEDUP_WAIT_REPLICAS=1"}, {"FAIL", "store", "0 replica(s)"}}},
		"memory":         {env{"DEDUP_STORE": "memory", "REDIS_URL": ""}, nil, 0, [][]string{{"warn", "store", "DEDUP_STORE=memory"}}},
	} {
		t.Run(name, func(t *testing.T) {
			// Not in parallel: they share the server that ends with the test.
			b := idleBench(t)
			b.lines(c.settings, c.code, append(c.lines, []string{"ok", "queue " + b.queue}), c.args...)
		})
	}
}

// TestCheckService asks as the program does before it consumes, and POSTs nothing.
func TestCheckService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings env
		code     int
		line     []string
	}{
		"unreachable":  {env{"FORWARD_URL": "http://" + serviceUser + ":Kx9%23service%2Fpw%40@" + nobody + "/messages"}, 1, []string{"FAIL", "service of ", nobody, "connection refused", "FORWARD_URL"}},
		"not healthy":  {env{"FORWARD_HEALTH_PATH": "/unhealthy"}, 1, []string{"FAIL", "service of ", "/unhealthy", "503"}},
		"healthy":      {env{"FORWARD_HEALTH_PATH": "/healthz"}, 0, []string{"ok", "service of ", "answers under /healthz"}},
		"no such host": {env{"FORWARD_URL": "http://service.invalid/messages"}, 1, []string{"FAIL", "service of ", "service.invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.service.Other(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/unhealthy" {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			b.lines(c.settings, c.code, [][]string{c.line, {"ok", "queue " + b.queue}, {"ok", "store"}})
			b.assertPosts(0)
		})
	}
}

// TestCheckConfiguration: every mistake is listed, and all that does not depend on it is looked at.
func TestCheckConfiguration(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	for name, c := range map[string]struct {
		settings env
		code     int
		lines    [][]string
		args     []string
	}{
		"mistakes": {env{"RETRY_HOLD": "soon", "LOG_LEVEL": "loud"}, 2, [][]string{
			{"FAIL", "configuration", "RETRY_HOLD"}, {"FAIL", "configuration", "LOG_LEVEL"}, {"ok", "queue " + b.queue}, {"ok", "store"}, {"ok", "service"},
		}, nil},
		"no broker":   {env{"RABBITMQ_URL": ""}, 2, [][]string{{"FAIL", "configuration", "RABBITMQ_URL"}, {"info", "broker", "not looked at"}, {"ok", "store"}, {"ok", "service"}}, nil},
		"no store":    {env{"REDIS_URL": ""}, 2, [][]string{{"FAIL", "configuration", "REDIS_URL"}, {"info", "store", "not looked at"}, {"ok", "queue"}}, nil},
		"no queues":   {env{"QUEUES": ""}, 2, [][]string{{"FAIL", "configuration", "QUEUES"}, {"ok", "broker"}, {"ok", "publishing"}, {"ok", "store"}}, nil},
		"no service":  {env{"FORWARD_URL": "ftp://x"}, 2, [][]string{{"FAIL", "configuration", "FORWARD_URL"}, {"info", "service", "not looked at"}, {"ok", "queue"}}, nil},
		"short grace": {env{"SHUTDOWN_GRACE": "5s"}, 0, [][]string{{"warn", "configuration", "SHUTDOWN_GRACE"}}, nil},
		"misspelt":    {env{"DEDUP_RETENTIONS": "1"}, 0, [][]string{{"warn", "configuration", "DEDUP_RETENTION"}}, nil},
		"no time":     {nil, 2, [][]string{{"--timeout"}}, []string{"--timeout", "0s"}},
		"no rate":     {nil, 2, [][]string{{"--timeout", "--rate"}}, []string{"--rate", "-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{t: t, queue: b.queue, service: startService(t)}
			b.lines(maps.Clone(c.settings), c.code, c.lines, c.args...)
		})
	}
}

// TestCheckAlarm: a broker that blocks publishers is told, and does not hold the check up.
func TestCheckAlarm(t *testing.T) {
	t.Parallel()
	broker, err := testkit.StartBroker(t.Context(), testkit.BrokerOptions{})
	must(t, err)
	defer func() { must(t, broker.Close()) }()
	client, err := testkit.Dial(broker.URL)
	must(t, err)
	defer func() { must(t, client.Close()) }()
	b := &bench{t: t, queue: nameOf(t), service: startService(t)}
	must(t, client.DeclareSource(b.queue, nil))
	ctx := within(t)
	_, err = broker.Ctl(ctx, "set_vm_memory_high_watermark", "0.00000001")
	must(t, err)
	for raised := ""; !strings.Contains(raised, "memory"); { // the command does not wait for the alarm
		raised, err = broker.Ctl(ctx, "eval", "rabbit_alarm:get_alarms().")
		must(t, err)
	}
	const patience = 20 * time.Second
	output := b.lines(env{"RABBITMQ_URL": broker.URL}, 1,
		[][]string{{"FAIL", "publishing", "blocks publishers", "free memory"}, {"ok", "queue " + b.queue}}, "--timeout", patience.String())
	if strings.Contains(output, "not done within") {
		t.Errorf("the alarm held the check up until its end:\n%s", output)
	}
}
