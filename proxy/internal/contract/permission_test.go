package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// allowed are permissions as RabbitMQ has them: a pattern each.
type allowed struct{ configure, write, read string }

// leastUsers are users that each lack one permission of those that the queue TestLeastPermissions-NAME needs, by NAME.
func leastUsers() map[string]allowed {
	users := map[string]allowed{}
	for name, without := range map[string]func(*allowed, string){
		"nothing":     func(*allowed, string) {},
		"consuming":   func(a *allowed, q string) { a.read = `^` + q + `\.wait\.(5|30)s$` },
		"letters":     func(a *allowed, q string) { a.configure = `^` + q + `\.wait\.(5|30)s$` },
		"publishing":  func(a *allowed, q string) { a.write = "^$" },
		"wait-queue":  func(a *allowed, q string) { a.configure = `^` + q + `\.dead$` },
		"wait-return": func(a *allowed, q string) { a.read = `^` + q + `$` },
		"declaring":   func(a *allowed, q string) { a.read = ".*" },
	} {
		q := "TestLeastPermissions-" + name
		a := allowed{`^(` + q + `\.dead|` + q + `\.wait\.(5|30)s)$`, `^amq\.default$`, `^(` + q + `|` + q + `\.wait\.(5|30)s)$`}
		without(&a, q)
		users["least-"+name] = a
	}
	return users
}

// TestLeastPermissions: with all of them everything works; each one that lacks is named, with the pattern.
func TestLeastPermissions(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, settings env) *bench {
		b := idleBench(t)
		b.service.Behave(func(r testkit.Received) testkit.Action {
			switch {
			case r.Key == "bad":
				return testkit.Action{Status: 400}
			case r.Key == "later" && r.Number == 1:
				return testkit.Action{Status: 503, Header: map[string][]string{"Retry-After": {"31"}}}
			}
			return testkit.Action{}
		})
		_, name, _ := strings.Cut(b.queue, "-")
		b.replica = launch(t, b.env().with(env{
			"RABBITMQ_URL": brokerURL("least-"+name, sidecarPassword, shared.broker.Addr, "/"), "RETRY_BACKOFF": "1s",
		}).with(settings))
		return b
	}
	saysNotParked := func(b *bench, words string) {
		_, err := b.Logs.Wait(within(b.t), func(l testkit.LogLine) bool {
			problem, _ := l.Fields["error"].(string)
			return l.Message() == "waiting" && l.Fields["part"] == "wait queues" && strings.Contains(problem, words)
		})
		must(b.t, err)
	}
	t.Run("nothing", func(t *testing.T) { // lacks
		t.Parallel()
		b := start(t, nil)
		b.waitState("consuming")
		b.publish(text("good", "body"), text("bad", "body"), text("later", "body"))
		b.waitOutcomes(map[string]float64{"done": 1, "dead_letter": 1, "parked": 1})
	})
	t.Run("consuming", func(t *testing.T) {
		t.Parallel()
		b := start(t, nil)
		b.waitMissing("consumer", "read ^"+b.queue+"$", "grant the user least-consuming in the vhost /")
	})
	t.Run("letters", func(t *testing.T) {
		t.Parallel()
		b := start(t, nil)
		b.waitState("consuming")
		b.publish(text("bad", "body"))
		b.waitMissing("dead letters", `configure ^`+b.queue+`\.dead$`)
		if why := b.waitStatus(func(status) bool { return true }).Queues[0].DeadLetters.Why; why != "permission" {
			t.Errorf("the reason is %q", why)
		}
	})
	t.Run("publishing", func(t *testing.T) {
		t.Parallel()
		b := start(t, nil)
		b.waitState("consuming")
		b.publish(text("bad", "body"))
		b.waitMissing("dead letters", `write ^amq\.default$`)
	})
	t.Run("wait-queue", func(t *testing.T) {
		t.Parallel()
		b := start(t, nil)
		b.waitState("consuming")
		b.publish(text("later", "body"))
		saysNotParked(b, `configure and read ^`+b.queue+`\.wait\.30s$`)
	})
	t.Run("wait-return", func(t *testing.T) {
		t.Parallel()
		b := start(t, nil)
		b.waitState("consuming")
		b.publish(text("later", "body"))
		saysNotParked(b, `read ^`+b.queue+`\.wait\.30s$`)
	})
	t.Run("declaring", func(t *testing.T) {
		t.Parallel()
		queue := nameOf(t)
		b := &bench{t: t, queue: queue, service: startService(t)}
		b.replica = launch(t, b.env().with(env{
			"RABBITMQ_URL": brokerURL("least-declaring", sidecarPassword, shared.broker.Addr, "/"), "RABBITMQ_DECLARE": "true",
		}))
		b.waitMissing("consumer", "declare queue", "configure ^"+queue+"$")
	})
}

var grantCommand = regexp.MustCompile(`rabbitmqctl (set_permissions .*)$`)

// TestTheCommandThatIsSaidHelps runs it, word for word, for a user that had no permission at all.
func TestTheCommandThatIsSaidHelps(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	b.answer(400, "")
	b.replica = launch(t, b.env().with(env{
		"RABBITMQ_URL": brokerURL(beginnerUser, sidecarPassword, shared.broker.Addr, "/"), "QUEUES": b.queue,
	}))
	b.publish(text("one", "body"))
	b.waitMissing("consumer", "the user "+beginnerUser+" has no permissions in the vhost /")
	problem := b.waitStatus(func(status) bool { return true }).Queues[0].Consumer.Problem
	m := grantCommand.FindStringSubmatch(problem)
	if m == nil {
		t.Fatalf("no command in: %s", problem)
	}
	var words []string
	for word := range strings.FieldsSeq(m[1]) {
		words = append(words, strings.Trim(word, "'"))
	}
	_, err := shared.broker.Ctl(within(t), words...)
	must(t, err)
	b.waitState("consuming")
	b.letters(1)
	b.finish()
}

// TestDeclare: a missing source queue is declared as a durable quorum queue, again when it is deleted; one that exists
// is used as it is.
func TestDeclare(t *testing.T) {
	t.Parallel()
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		b := &bench{t: t, queue: nameOf(t), service: startService(t)}
		b.replica = launch(t, b.env().with(env{"RABBITMQ_DECLARE": "true"}))
		b.waitState("consuming")
		must(t, shared.client.DeclareQuorum(b.queue, nil)) // would be refused if it were another kind
		b.publish(text("one", "body"))
		b.waitOutcomes(map[string]float64{"done": 1})
		must(t, shared.client.Delete(b.queue))
		b.waitMetrics(func(m samples) bool {
			return m.byLabel("rabbitonce_session_ends_total", b.queue, "why")["cancelled"] == 1
		})
		b.waitState("consuming")
		b.publish(text("two", "body"))
		b.waitOutcomes(map[string]float64{"done": 2})
		b.finish()
	})
	t.Run("there", func(t *testing.T) {
		t.Parallel()
		b := &bench{t: t, queue: nameOf(t), service: startService(t)}
		must(t, shared.client.DeclareClassic(b.queue, amqp.Table{"x-max-priority": int8(3)}))
		b.replica = launch(t, b.env().with(env{"RABBITMQ_DECLARE": "true"}))
		b.waitState("consuming")
		b.publish(text("one", "body"))
		b.waitOutcomes(map[string]float64{"done": 1})
		b.finish()
	})
}

// TestNotAskedInAHurry: whatever is refused is tried again at a pace that a broker does not feel.
func TestNotAskedInAHurry(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, queue: nameOf(t), service: startService(t)}
	must(t, shared.client.DeclareQuorum(b.queue, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeStream}))
	b.replica = launch(t, b.env())
	b.waitState("consuming")
	for {
		b.publish(text("one", "body")) // a consumer of a stream begins at its end
		s := b.waitStatus(func(status) bool { return true })
		if s.Queues[0].Consumer.Why == "stream" {
			break
		}
	}
	for range 20 {
		b.publish(text("one", "body"))
	}
	if ends := b.metrics().byLabel("rabbitonce_session_ends_total", b.queue, "why"); ends["stream"] != 1 {
		t.Errorf("session_ends_total: %v", ends)
	}
	if !slices.Contains(b.waitStatus(func(status) bool { return true }).Missing, "consumer of queue "+b.queue+": the queue is a stream, which cannot be consumed: use a quorum or classic queue") {
		t.Error("/status does not say it")
	}
}
