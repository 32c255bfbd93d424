package contract

import (
	"net/http"
	"strings"
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// TestStoreSaysNo: no claim, no POST; the program waits and tells why.
func TestStoreSaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings env
		words    []string
	}{
		"unreachable":     {env{"REDIS_URL": "redis://" + nobody}, []string{nobody, "connection refused"}},
		"no password":     {env{"REDIS_URL": "redis://" + shared.redis.Addr}, []string{"wants a password", "REDIS_PASSWORD"}},
		"wrong password":  {env{"REDIS_URL": storeURL("wrong")}, []string{"WRONGPASS", "REDIS_PASSWORD"}},
		"another service": {env{"REDIS_URL": "redis://" + shared.broker.Addr}, []string{"store"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.publish(text("one", "body"))
			b.replica = launch(t, b.env().with(c.settings))
			b.waitMissing(append(c.words, "store")...)
			if up := b.metrics()["rabbitonce_store_up"]; up != 0 {
				t.Errorf("store_up is %v", up)
			}
			b.stop()
			b.assertPosts(0)
		})
	}
}

// TestServiceSaysNo: the queue is not touched before the service answers.
func TestServiceSaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings env
		words    []string
	}{
		"unreachable":    {env{"FORWARD_URL": "http://" + serviceUser + ":Kx9%23service%2Fpw%40@" + nobody + "/messages"}, []string{nobody, "connection refused"}},
		"not healthy":    {env{"FORWARD_HEALTH_PATH": "/healthz"}, []string{"/healthz", "503"}},
		"no such host":   {env{"FORWARD_URL": "http://service.invalid/messages"}, []string{"service.invalid"}},
		"no such socket": {env{"FORWARD_URL": "unix:/no/such.sock:/messages"}, []string{"/no/such.sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.service.Other(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			b.publish(text("one", "body"))
			b.replica = launch(t, b.env().with(c.settings))
			b.waitMissing(append(c.words, "service")...)
			m := b.metrics()
			if up, paused := m[`rabbitonce_service_up{queue="`+b.queue+`"}`], m.byLabel("rabbitonce_queue_paused", b.queue, "why")["service"]; up != 0 || paused != 1 {
				t.Errorf("service_up %v, queue_paused %v", up, paused)
			}
			if ready, consumers, err := shared.client.Depth(b.queue); err != nil || ready != 1 || consumers != 0 {
				t.Errorf("%d messages and %d consumers in the queue (%v), want 1 and 0", ready, consumers, err)
			}
			b.stop()
			b.assertPosts(0)
		})
	}
}

// TestAdvice: settings that cost something are told at start, good ones are not.
func TestAdvice(t *testing.T) {
	t.Parallel()
	evicting, err := testkit.StartRedis(within(t), testkit.RedisOptions{Volatile: true, Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	must(t, err)
	defer evicting.Close()
	for name, c := range map[string]struct {
		settings env
		words    []string
	}{
		"evicting Redis":  {env{"REDIS_URL": evicting.URL}, []string{"allkeys-lru", "noeviction"}},
		"too much held":   {env{"PREFETCH": "5000", "FORWARD_TIMEOUT": "60s", "FORWARD_CONCURRENCY": "4", "SHUTDOWN_GRACE": "61s"}, []string{"PREFETCH", "5000", "60"}},
		"short grace":     {env{"SHUTDOWN_GRACE": "5s", "FORWARD_TIMEOUT": "6s"}, []string{"SHUTDOWN_GRACE", "FORWARD_TIMEOUT"}},
		"store in memory": {env{"DEDUP_STORE": "memory", "REDIS_URL": ""}, []string{"memory", "replica"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Not in parallel: they share the Redis that ends with the test.
			quiet := env{"SHUTDOWN_GRACE": "20s", "FORWARD_TIMEOUT": "10s"}
			b := newBench(t, quiet.with(c.settings))
			_, err := b.Logs.Wait(within(t), func(l testkit.LogLine) bool {
				for _, w := range c.words {
					if !strings.Contains(l.Message(), w) {
						return false
					}
				}
				return l.Fields["level"] == "WARN"
			})
			if err != nil {
				t.Errorf("no advice: %v", err)
			}
			b.publish(text("one", "body"), text("one", "body"))
			b.waitOutcomes(map[string]float64{"done": 1, "duplicate": 1})
			b.finish()
			if n := len(b.warnings()); n != 1 {
				t.Errorf("%d warnings, want the one: %q", n, b.warnings())
			}
		})
	}
}

// TestPrefetchIsLowered also tells the value that holds.
func TestPrefetchIsLowered(t *testing.T) {
	t.Parallel()
	b := newBench(t, env{"PREFETCH": "5000", "FORWARD_TIMEOUT": "60s", "FORWARD_CONCURRENCY": "4"})
	if prefetch := b.waitState("consuming").Queues[0].Prefetch; prefetch != 60 {
		t.Errorf("prefetch %d, want 60: 4 at a time for 60s each is 15 minutes", prefetch)
	}
}
