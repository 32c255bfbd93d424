package contract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// TestFourVariables: nothing but these is needed (and a free port for the probes).
func TestFourVariables(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	all := b.env()
	needed := env{}
	for _, name := range []string{"RABBITMQ_URL", "REDIS_URL", "QUEUES", "FORWARD_URL"} {
		needed[name] = all[name]
	}
	b.replica = launch(t, needed)
	s := b.waitState("consuming")
	if q := s.Queues[0]; q.Prefetch != 16 || q.Concurrency != 4 || q.DeadLetterQueue != b.queue+".dead" {
		t.Errorf("defaults in /status: %+v", q)
	}
	b.publish(text("one", "body"), text("one", "body"))
	b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
	b.finish()
	b.assertPosts(1)
}

// TestIDSources looks for the ID where DEDUP_ID_FROM says, in its order.
func TestIDSources(t *testing.T) {
	t.Parallel()
	message := amqp.Publishing{
		MessageId: "m", CorrelationId: "c", Type: "order.created", Headers: amqp.Table{"x-message-id": "x", "X-Other": int64(12)},
		Body: []byte(`{"id": "j", "lines": [{"id": 1}, {"id": 22}], "a/b": {"~": "escaped"}}`),
	}
	for from, want := range map[string]string{
		"":                             "m", // the default
		"message-id":                   "m",
		"correlation-id":               "c",
		"header:x-message-id":          "x",
		"header:X-Other":               "12",
		"json:/id":                     "j",
		"json:/lines/1/id":             "22",
		"json:/a~1b/~0":                "escaped",
		"header:absent, message-id":    "m",
		"json:/absent,correlation-id":  "c",
		"json:/lines,header:X-Other":   "12",
		"header:x-other,message-id":    "m", // names of headers have a case
		"json:/lines/01/id,message-id": "m",
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, env{"DEDUP_ID_FROM": from})
			b.publish(message, message)
			b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
			if key := b.service.Journal.Entries()[0].Key; key != want {
				t.Errorf("Idempotency-Key %q, want %q", key, want)
			}
			b.finish()
		})
	}
}

// TestIDFromHash tells messages apart by what they say and how they were routed, not by their other properties.
func TestIDFromHash(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"DEDUP_ID_FROM": "hash"})
	exchange := b.queue + "-exchange"
	must(t, shared.client.DeclareExchange(exchange, "topic"))
	must(t, shared.client.Bind(b.queue, "#", exchange))
	publish := func(routingKey string, p amqp.Publishing) {
		must(t, shared.client.Publish(within(t), testkit.Message{Exchange: exchange, RoutingKey: routingKey, Publishing: p}))
	}
	publish("created", amqp.Publishing{Body: []byte("one"), MessageId: "1"})
	publish("created", amqp.Publishing{Body: []byte("one"), MessageId: "2"}) // a copy
	publish("changed", amqp.Publishing{Body: []byte("one"), MessageId: "1"})
	publish("created", amqp.Publishing{Body: []byte("two"), MessageId: "1"})
	publish("created", amqp.Publishing{Body: []byte("one"), MessageId: "1", Type: "typed"})
	b.publish(amqp.Publishing{Body: []byte("one"), MessageId: "1"}) // another exchange
	b.waitOutcomes(map[string]float64{"done": 5, "duplicate": 1})
	b.finish()
}

// TestSettingsOfOneQueue: two queues in one process, each with settings of its own.
func TestSettingsOfOneQueue(t *testing.T) {
	t.Parallel()
	b, second, special := idleBench(t), nameOf(t)+".b", startService(t)
	must(t, shared.client.DeclareSource(second, nil))
	own := "QUEUE_" + strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(second)) + "_"
	r := launch(t, b.env().with(env{
		"QUEUES": " " + b.queue + " , " + second + ",", "FORWARD_CONCURRENCY": "2",
		own + "FORWARD_URL": special.URL + "/special/{queue}", own + "DEDUP_ID_FROM": "json:/id", own + "DEADLETTER_QUEUE": b.queue + "-special-dead",
		own + "FORWARD_CONCURRENCY": "1", own + "PREFETCH": "3", "RABBITONCE_" + own + "RETRY_MAX_ATTEMPTS": "2", own + "RETRY_MAX_ATTEMPTS": "9",
	}))
	s := r.waitState("consuming")
	if len(s.Queues) != 2 || s.Queues[0].Prefetch != 8 || s.Queues[1].Prefetch != 3 || s.Queues[1].Concurrency != 1 {
		t.Errorf("/status: %+v", s.Queues)
	}
	special.Behave(func(r testkit.Received) testkit.Action {
		if r.Key == "bad" {
			return testkit.Action{Status: 500}
		}
		return testkit.Action{}
	})
	must(t, shared.client.PublishTo(within(t), b.queue, text("m", `{"id": "j"}`)))
	must(t, shared.client.PublishTo(within(t), second, text("m", `{"id": "j"}`), text("other", `{"id": "j"}`), text("m", `{"id": "bad"}`)))
	r.waitQueueOutcomes(b.queue, map[string]float64{"done": 1})
	r.waitQueueOutcomes(second, map[string]float64{"done": 1, "duplicate": 1, "dead_letter": 1})
	if keys := b.service.Journal.Keys(); len(keys) != 1 || len(keys["m"]) != 1 {
		t.Errorf("keys in the first service: %q", sortedNames(keys))
	}
	keys := special.Journal.Keys()
	if len(keys) != 2 || len(keys["j"]) != 1 || len(keys["bad"]) != 2 || keys["j"][0].Path != "/special/"+second || keys["j"][0].Queue != second {
		t.Errorf("POSTs to the second service: %v", keys)
	}
	letters, err := shared.client.Take(within(t), b.queue+"-special-dead", 1)
	must(t, err)
	assertWhy(t, letters[0].Headers, map[string]any{"queue": second, "reason": "attempts-exhausted", "attempts": int64(2)})
}

// TestWhereValuesComeFrom: files, the prefix that wins, and values that are empty.
func TestWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]func(*testing.T, env) env{
		"files": func(t *testing.T, e env) env {
			return env{
				"RABBITMQ_URL": "", "RABBITMQ_URL_FILE": writeFile(t, "amqp://"+shared.broker.Addr+"\n"),
				"RABBITMQ_USERNAME": sidecarUser, "RABBITMQ_PASSWORD_FILE": writeFile(t, sidecarPassword+"\r\n"),
				"REDIS_URL": "", "REDIS_URL_FILE": writeFile(t, "redis://"+shared.redis.Addr), "REDIS_PASSWORD_FILE": writeFile(t, redisPassword+"\n"),
				"FORWARD_URL": "", "RABBITONCE_FORWARD_URL_FILE": writeFile(t, e["FORWARD_URL"]+"\n"),
			}
		},
		"verbatim": func(*testing.T, env) env {
			return env{
				"RABBITMQ_URL": "amqp://nobody:nothing@" + shared.broker.Addr, "RABBITMQ_USERNAME": sidecarUser, "RABBITMQ_PASSWORD": sidecarPassword,
				"REDIS_URL": "redis://:nothing@" + shared.redis.Addr, "REDIS_PASSWORD": redisPassword,
			}
		},
		"the prefix wins": func(_ *testing.T, e env) env {
			return env{
				"RABBITMQ_URL": "amqp://of-the-service:5672", "RABBITONCE_RABBITMQ_URL": e["RABBITMQ_URL"],
				"REDIS_URL": "not a URL", "RABBITONCE_REDIS_URL": e["REDIS_URL"], "QUEUES": "others", "RABBITONCE_QUEUES": e["QUEUES"],
				"LOG_LEVEL": "TRACE", "RABBITONCE_LOG_LEVEL": "debug", "RABBITONCE_FORWARD_URL": e["FORWARD_URL"], "FORWARD_URL": "http://127.0.0.1:1",
			}
		},
		"empty is unset": func(*testing.T, env) env {
			return env{
				"FORWARD_TIMEOUT": "", "DEDUP_ID_FROM": "", "PREFETCH": "", "RETRY_MAX_ATTEMPTS": "", "LOG_FORMAT": "", "RABBITONCE_QUEUES": "",
				"REDIS_PASSWORD": "", "REDIS_PASSWORD_FILE": "", "RABBITMQ_USERNAME": "", "RABBITMQ_PASSWORD": "", "ORDERING": "", "DEDUP_MODE": "",
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.replica = launch(t, b.env().with(settings(t, b.env())))
			b.waitState("consuming")
			b.publish(text("one", "body"))
			b.waitOutcomes(map[string]float64{"done": 1})
			b.finish()
		})
	}
}

// writeFile writes a file for a NAME_FILE variable and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "value")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestConsumerNames: the pair of message ID and consumer is the identity, and vhost and queue make the consumer's name.
func TestConsumerNames(t *testing.T) {
	t.Parallel()
	first, second := idleBench(t), &bench{t: t, queue: nameOf(t) + "-2", service: startService(t)}
	must(t, shared.client.DeclareSource(second.queue, nil))
	prefix := env{"DEDUP_PREFIX": nameOf(t)}
	elsewhere, err := testkit.Dial(brokerURL("guest", "guest", shared.broker.Addr, slashVhost))
	must(t, err)
	defer elsewhere.Close()
	must(t, elsewhere.DeclareSource(first.queue, nil))
	first.replica = launch(t, first.env().with(prefix))
	second.replica = launch(t, second.env().with(prefix))
	third := launch(t, first.env().with(prefix).with(env{"RABBITMQ_URL": brokerURL(sidecarUser, sidecarPassword, shared.broker.Addr, slashVhost)}))
	for _, r := range []*replica{first.replica, second.replica, third} {
		r.waitState("consuming")
	}
	first.publish(text("one", "body"))
	second.publish(text("one", "body"))
	must(t, elsewhere.PublishTo(within(t), first.queue, text("one", "body")))
	third.waitQueueOutcomes(first.queue, map[string]float64{"done": 1})
	first.waitOutcomes(map[string]float64{"done": 1})
	second.waitOutcomes(map[string]float64{"done": 1})
	want := []string{
		prefix["DEDUP_PREFIX"] + "://" + first.queue + ":one", prefix["DEDUP_PREFIX"] + "://" + second.queue + ":one",
		prefix["DEDUP_PREFIX"] + ":" + slashVhost + "/" + first.queue + ":one",
	}
	if diff := cmp.Diff(want, sortedNames(first.records()), sorted()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	first.finish()
	second.finish()
}

// TestSharedConsumerName: two processes with one consumer name share the work of two queues that carry the same messages.
func TestSharedConsumerName(t *testing.T) {
	t.Parallel()
	first, second := idleBench(t), &bench{t: t, queue: nameOf(t) + "-2", service: startService(t)}
	must(t, shared.client.DeclareSource(second.queue, nil))
	same := env{"DEDUP_PREFIX": nameOf(t), "DEDUP_CONSUMER": "bill:ing%"}
	first.replica, second.replica = launch(t, first.env().with(same)), launch(t, second.env().with(same))
	first.waitState("consuming")
	second.waitState("consuming")
	first.publish(text("one", "body"))
	first.waitOutcomes(map[string]float64{"done": 1})
	second.publish(text("one", "body"))
	second.waitOutcomes(map[string]float64{"duplicate": 1})
	if got := sortedNames(first.records()); !slices.Equal(got, []string{nameOf(t) + ":bill%3Aing%25:one"}) {
		t.Errorf("records: %q", got)
	}
	first.finish()
	second.finish()
}
