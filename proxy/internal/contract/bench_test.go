package contract

import (
	"context"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// env is a replica's environment.
type env map[string]string

// with returns a copy with other values; "" unsets a variable.
func (e env) with(other env) env {
	all := maps.Clone(e)
	maps.Copy(all, other)
	return all
}

// bench is a replica at work between the broker and a service of its own.
type bench struct {
	*replica // nil until it is launched
	t        *testing.T
	queue    string
	service  *testkit.Service
}

// newBench declares a queue, and starts a service that answers 200 and keeps bodies, and a replica that consumes.
func newBench(t *testing.T, settings env) *bench {
	t.Helper()
	b := idleBench(t)
	b.replica = launch(t, b.env().with(settings))
	b.waitState("consuming")
	return b
}

// idleBench is a bench whose replica is not started yet.
func idleBench(t *testing.T) *bench {
	t.Helper()
	queue := nameOf(t)
	must(t, shared.client.DeclareSource(queue, nil))
	return &bench{t: t, queue: queue, service: startService(t)}
}

// env is what the bench's replica needs. Retries come quickly.
func (b *bench) env() env {
	return env{
		"RABBITMQ_URL": brokerURL(sidecarUser, sidecarPassword, shared.broker.Addr, "/"),
		"REDIS_URL":    storeURL(redisPassword),
		"QUEUES":       b.queue,
		"FORWARD_URL":  serviceURL(b.service) + "/messages",
		"DEDUP_PREFIX": b.queue, "RETRY_BACKOFF": "50ms", "LOG_LEVEL": "debug",
		"FORWARD_BRAKE_AFTER": "0", // most tests let messages fail before any ends done
	}
}

func brokerURL(user, password, hosts, vhost string) string {
	return "amqp://" + url.UserPassword(user, password).String() + "@" + hosts + "/" + url.PathEscape(strings.TrimPrefix(vhost, "/"))
}

func storeURL(password string) string {
	return "redis://" + url.UserPassword("", password).String() + "@" + shared.redis.Addr + "/0"
}

func serviceURL(s *testkit.Service) string {
	return "http://" + url.UserPassword(serviceUser, servicePassword).String() + "@" + s.Addr
}

var notAName = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// nameOf is a queue name that no other test has.
func nameOf(t *testing.T) string { return notAName.ReplaceAllString(t.Name(), "-") }

func startService(t *testing.T) *testkit.Service {
	t.Helper()
	s, err := testkit.StartService(nil)
	must(t, err)
	s.KeepBodies()
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// publish sends messages to the bench's queue.
func (b *bench) publish(messages ...amqp.Publishing) {
	b.t.Helper()
	must(b.t, shared.client.PublishTo(within(b.t), b.queue, messages...))
}

// answer makes the service answer every POST with a status and a body.
func (b *bench) answer(status int, body string) {
	b.service.Behave(func(testkit.Received) testkit.Action {
		return testkit.Action{Status: status, Body: []byte(body)}
	})
}

// waitOutcomes waits until as many deliveries have ended as outcomes add up to, and compares.
func (b *bench) waitOutcomes(want map[string]float64) {
	b.t.Helper()
	b.waitQueueOutcomes(b.queue, want)
}

func (r *replica) waitQueueOutcomes(queue string, want map[string]float64) {
	r.t.Helper()
	var total float64
	for _, n := range want {
		total += n
	}
	r.waitMetrics(func(m samples) bool { return m.sum("rabbitonce_deliveries_total", queue) >= total })
	got := r.metrics().byLabel("rabbitonce_deliveries_total", queue, "outcome")
	maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("outcomes of deliveries (-want +got):\n%s", diff)
	}
}

// letters waits for n dead letters and takes them.
func (b *bench) letters(n int) []amqp.Delivery {
	b.t.Helper()
	return b.lettersIn(b.queue+".dead", n)
}

func (b *bench) lettersIn(queue string, n int) []amqp.Delivery {
	b.t.Helper()
	// The first letter may declare the queue.
	b.waitMetrics(func(m samples) bool { return m.sum("rabbitonce_dead_letters_total", b.queue) > 0 })
	letters, err := shared.client.Take(within(b.t), queue, n)
	must(b.t, err)
	return letters
}

// waitPosts waits until n POSTs were answered.
func (b *bench) waitPosts(n int) []testkit.Entry {
	b.t.Helper()
	must(b.t, b.service.Journal.Wait(within(b.t), func(all []testkit.Entry) bool {
		return len(slices.DeleteFunc(slices.Clone(all), testkit.Entry.Open)) >= n
	}))
	return b.service.Journal.Entries()
}

// assertPosts checks how many POSTs there were, of whatever ID.
func (b *bench) assertPosts(n int) {
	b.t.Helper()
	if got := b.service.Journal.Count(); got != n {
		b.t.Errorf("%d POSTs, want %d", got, n)
	}
}

// finish stops the replica and checks that nothing is left in the queue.
func (b *bench) finish() {
	b.t.Helper()
	b.stop()
	ready, _, err := shared.client.Depth(b.queue)
	must(b.t, err)
	if ready != 0 {
		b.t.Errorf("%d messages are left in the queue", ready)
	}
}

// records returns the claim records of the bench: Redis keys and values.
func (b *bench) records() map[string]string {
	b.t.Helper()
	ctx := within(b.t)
	keys, err := shared.store.Keys(ctx, b.queue+":*").Result()
	must(b.t, err)
	records := map[string]string{}
	for _, key := range keys {
		value, err := shared.store.Get(ctx, key).Result()
		must(b.t, err)
		records[key] = value
	}
	return records
}

// copyOf is the message as a shovel or an operator's tool would publish it again: all properties and headers.
func copyOf(d amqp.Delivery) amqp.Publishing {
	return amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
		Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
	}
}

// text is a message with an ID and a body.
func text(id, body string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, Body: []byte(body), ContentType: "text/plain"}
}

func bodies(entries []testkit.Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, string(e.Body))
	}
	return all
}

// sorted compares lists of texts in any order.
func sorted() cmp.Option { return cmpopts.SortSlices(strings.Compare) }

// within returns a context that ends with the test, and is generous: it turns a hang into a failure.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
