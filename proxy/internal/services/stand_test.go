package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// patience bounds a test: a hang becomes a failure, a busy machine does not.
const patience = 4 * time.Minute

// stand is one test's corner: a queue with its dead letters, and a replica that brings its messages to a host.
type stand struct {
	t       *testing.T
	ctx     context.Context // ends with the test's patience
	host    *host
	client  *testkit.Client
	replica *testkit.Replica
	queue   string
	dead    string

	published map[string]message
	victims   int // messages published that kill their process
}

// standNumber keeps names apart when a test runs more than once.
var standNumber atomic.Int64

// message is what a test publishes.
type message struct {
	id      string
	body    string
	headers amqp.Table
}

// env are environment variables of a replica.
type env map[string]string

// newStand returns a stand whose replica is at work. What no server should be able to hide is on: no brake that would make a
// failing service look like a slow one.
func newStand(t *testing.T, h *host, settings env) *stand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	queue := fmt.Sprintf("%s.%d", strings.ReplaceAll(t.Name(), "/", "."), standNumber.Add(1))
	s := &stand{t: t, ctx: ctx, host: h, queue: queue, dead: queue + ".dead", published: map[string]message{}}
	client, err := testkit.Dial(shared.Broker.URL)
	s.must(err)
	s.client = client
	t.Cleanup(func() { s.closed(client.Close()) })
	s.must(client.DeclareSource(s.queue, nil))
	s.must(client.DeclareSource(s.dead, nil))
	all := env{
		"RABBITMQ_URL": shared.Broker.URL, "REDIS_URL": shared.Redis.URL, "QUEUES": s.queue, "FORWARD_URL": h.url + "/work",
		"DEDUP_PREFIX": s.queue, "ADMIN_ADDR": "", "LOG_LEVEL": "debug", "FORWARD_BRAKE_AFTER": "0", "RETRY_BACKOFF": "200ms",
		"FORWARD_CONCURRENCY": strconv.Itoa(workers), "SHUTDOWN_GRACE": "2m",
	}
	maps.Copy(all, settings)
	s.replica, err = testkit.StartReplica(shared.Binary.Path, all)
	s.must(err)
	t.Cleanup(s.closeReplica)
	s.must(s.replica.WaitReady(ctx))
	return s
}

func (s *stand) closeReplica() {
	s.closed(s.replica.Close())
	for _, alarm := range s.replica.Alarms() {
		s.t.Errorf("replica: %s:\n%s", alarm, s.replica.Logs.Text())
	}
	if s.t.Failed() {
		s.t.Logf("the end of the log of the replica:\n%s", s.replica.Logs.Tail(40))
	}
}

// publish puts messages into the queue and returns when the broker has confirmed them.
func (s *stand) publish(messages ...message) {
	s.t.Helper()
	var publishings []amqp.Publishing
	for _, m := range messages {
		publishings = append(publishings, amqp.Publishing{
			MessageId: m.id, DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: []byte(m.body), Headers: m.headers,
		})
		s.published[m.id] = m
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, publishings...))
}

// batch returns n messages with these headers and new IDs that say what they are for.
func (s *stand) batch(what string, n int, headers amqp.Table) []message {
	messages := make([]message, n)
	for i := range messages {
		id := fmt.Sprintf("%s.%s-%d", s.queue, what, len(s.published)+i)
		messages[i] = message{id: id, body: fmt.Sprintf("{%q:1}", id), headers: headers}
	}
	return messages
}

// story is what the service has of a message so far.
func (s *stand) story(id string) story {
	s.t.Helper()
	stories, err := s.host.journal.stories()
	s.must(err)
	return stories[id]
}

// done waits until the service has done the work of these messages.
func (s *stand) done(messages ...message) {
	s.t.Helper()
	s.eventually("work is done", func() error {
		stories, err := s.host.journal.stories()
		for _, m := range messages {
			if err == nil && len(stories[m.id].works) == 0 {
				err = fmt.Errorf("%s: %s", m.id, stories[m.id])
			}
		}
		return err
	})
}

// whole wants the body to have arrived as it was published.
func (s *stand) whole(m message, l line) {
	s.t.Helper()
	sum := sha256.Sum256([]byte(m.body))
	if l.Length != len(m.body) || l.SHA256 != hex.EncodeToString(sum[:]) {
		s.t.Errorf("%s: a body of %d bytes, SHA-256 %s arrived; %d bytes, %x were published", m.id, l.Length, l.SHA256, len(m.body), sum)
	}
}

// eventually asks again and again what can only be asked of a server; the error says why it does not hold.
func (s *stand) eventually(what string, holds func() error) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("%s: did not happen in time: %v", what, err)
		}
	}
}

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
