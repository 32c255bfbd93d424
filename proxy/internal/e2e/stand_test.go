package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// stand is one test's corner of the servers: a queue with its dead letters, a part of the key space, a service, and the replicas
// that the test starts.
type stand struct {
	t       *testing.T
	ctx     context.Context // ends with the test's patience
	broker  *testkit.Broker
	redis   *testkit.Redis
	client  *testkit.Client
	service *testkit.Service
	queue   string
	dead    string

	replicas []*replica
}

// env are environment variables of a replica.
type env map[string]string

// patience bounds a test: a hang becomes a failure, a busy machine does not.
const patience = 3 * time.Minute

// Asking the broker with its own tool starts an Erlang VM, a second of a processor: less often.
const (
	askCheap = 50 * time.Millisecond
	askDear  = 700 * time.Millisecond
)

// standNumber keeps names apart when a test runs more than once.
var standNumber atomic.Int64

// newStand returns a stand on the shared servers. A nil behaviour answers 200.
func newStand(t *testing.T, behaviour testkit.Behaviour) *stand {
	t.Helper()
	return newStandOn(t, shared.Broker, shared.Redis, behaviour)
}

// ownBroker is a broker that no other test uses.
func ownBroker(t *testing.T, options testkit.BrokerOptions) *testkit.Broker {
	t.Helper()
	broker, err := testkit.StartBroker(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

func newStandOn(t *testing.T, broker *testkit.Broker, redis *testkit.Redis, behaviour testkit.Behaviour) *stand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	queue := fmt.Sprintf("%s.%d", strings.NewReplacer("/", ".", " ", "-", ",", "").Replace(t.Name()), standNumber.Add(1))
	s := &stand{t: t, ctx: ctx, broker: broker, redis: redis, queue: queue, dead: queue + ".dead"}
	s.dial()
	service, err := testkit.StartService(behaviour)
	s.must(err)
	s.service = service
	t.Cleanup(func() { s.closed(service.Close()) })
	s.declare(s.queue)
	s.declare(s.dead)
	t.Cleanup(s.closeReplicas) // first of all
	return s
}

// dial opens the test's own connection to the broker, again after the broker was down.
func (s *stand) dial() {
	s.t.Helper()
	client, err := testkit.Dial(s.broker.URL)
	s.must(err)
	s.client = client
	s.t.Cleanup(func() { s.closed(client.Close()) })
}

// declare declares a queue of this test run's type. A test that is about quorum queues declares its own.
func (s *stand) declare(queue string) {
	s.t.Helper()
	s.must(s.client.DeclareSource(queue, nil))
}

// publish puts messages with these IDs into the queue and returns when the broker has confirmed them. Copies of an ID are equal.
func (s *stand) publish(ids ...string) {
	s.t.Helper()
	publishings := make([]amqp.Publishing, len(ids))
	for i, id := range ids {
		publishings[i] = message(id)
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, publishings...))
}

func message(id string) amqp.Publishing {
	return amqp.Publishing{
		MessageId: id, DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: fmt.Appendf(nil, "{%q:1}", id),
	}
}

// ids returns n IDs.
func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// legs are fault proxies on a replica's way to its servers.
type legs struct {
	amqp, store *testkit.FaultProxy
	env         env // sends a replica through them
}

// newLegs returns proxies of their own, so that what they hold is one replica's.
func (s *stand) newLegs() legs {
	s.t.Helper()
	amqpLeg, err := testkit.NewFaultProxy(s.broker.Addr, testkit.AMQP)
	s.must(err)
	s.t.Cleanup(func() { s.closed(amqpLeg.Close()) })
	storeLeg, err := testkit.NewFaultProxy(s.redis.Addr, testkit.RESP)
	s.must(err)
	s.t.Cleanup(func() { s.closed(storeLeg.Close()) })
	return legs{amqp: amqpLeg, store: storeLeg, env: env{
		"RABBITMQ_URL": s.broker.URLVia(amqpLeg.Addr), "REDIS_URL": s.redis.URLVia(storeLeg.Addr),
	}}
}

// onRecord matches an operation on the record of an ID, or the reply to it. The store's health is asked with operations on other records.
func (s *stand) onRecord(operation, id string) testkit.Match {
	return testkit.RedisOp(operation, "/"+s.queue+":"+id)
}

// start starts a replica. Later settings win over earlier ones, and all over the stand's own.
func (s *stand) start(settings ...env) *replica {
	s.t.Helper()
	all := env{
		"RABBITMQ_URL": s.broker.URL, "REDIS_URL": s.redis.URL, "QUEUES": s.queue, "FORWARD_URL": s.service.URL + "/work",
		"DEDUP_PREFIX": s.queue, "LOG_LEVEL": "debug", "ADMIN_ADDR": "",
		"FORWARD_BRAKE_AFTER": "0", // most tests let messages fail before any ends done; brake_test.go is about it
	}
	for _, more := range settings {
		maps.Copy(all, more)
	}
	process, err := testkit.StartReplica(shared.Binary.Path, all)
	s.must(err)
	r := &replica{Replica: process, stand: s}
	s.replicas = append(s.replicas, r)
	return r
}

// closeReplicas ends the replicas and looks at what they said.
func (s *stand) closeReplicas() {
	if s.t.Failed() {
		s.logQueues()
	}
	for i, r := range s.replicas {
		s.closed(r.Close())
		for _, alarm := range r.Alarms() {
			s.t.Errorf("replica %d: %s:\n%s", i+1, alarm, r.Logs.Text())
		}
		if s.t.Failed() {
			s.t.Logf("the end of the log of replica %d:\n%s", i+1, r.Logs.Tail(30))
		}
	}
	if s.t.Failed() {
		s.logJournal()
	}
}

// logQueues prints where the broker has the test's messages: ready, with a consumer, in a wait queue.
func (s *stand) logQueues() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own may be over
	defer cancel()
	out, err := s.broker.Ctl(ctx, "list_queues", "name", "messages_ready", "messages_unacknowledged", "consumers")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, s.queue) {
			s.t.Logf("queue, ready, unacknowledged, consumers: %s", line)
		}
	}
	if err != nil {
		s.t.Logf("list queues: %v", err)
	}
}

// logJournal prints the POSTs, the last ones of many.
func (s *stand) logJournal() {
	entries := s.service.Journal.Entries()
	for _, e := range entries[max(0, len(entries)-40):] {
		s.t.Logf("POST of %s began %s, ended %s: attempt %s, unknown %t, answered %d", e.Key,
			e.Began.Format("15:04:05.000"), e.Ended.Format("15:04:05.000"), e.Attempt, e.Unknown, e.Status)
	}
}

// must fails the test on an error.
func (s *stand) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) closed(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("close: %v", err)
	}
}

// eventually asks again and again what can only be asked of a server. The error says why it does not hold.
func (s *stand) eventually(what string, holds func() (bool, error)) {
	s.t.Helper()
	s.eventuallyEvery(askCheap, what, holds)
}

func (s *stand) eventuallyEvery(interval time.Duration, what string, holds func() (bool, error)) {
	s.t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		ok, why := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("%s: did not happen in time: %v", what, why)
		}
	}
}
