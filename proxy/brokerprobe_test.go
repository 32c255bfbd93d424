package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// TestQuestionsToTheBroker asks a real broker: versions differ in their words and in what they look at first.
func TestQuestionsToTheBroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	broker, err := testkit.StartBroker(ctx, testkit.BrokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := amqp.Dial(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Run("facts", func(t *testing.T) { factsAreRead(t, conn) })
	t.Run("nothing is created", func(t *testing.T) { nothingIsCreated(t, conn) })
	t.Run("nothing is taken", func(t *testing.T) { nothingIsTaken(t, conn) })
	t.Run("would declare", func(t *testing.T) { declarationsAreForeseen(t, conn) })
	t.Run("publishing", func(t *testing.T) {
		if err := tryPublishing(ctx, conn); err != nil {
			t.Error(err)
		}
	})
	if conn.IsClosed() {
		t.Error("a question cost the connection")
	}
}

func declared(t *testing.T, conn *connection, name string, durable, autoDelete bool, arguments table) {
	t.Helper()
	err := onChannel(conn, func(ch *channel) error {
		_, err := ch.QueueDeclare(name, durable, autoDelete, false, false, arguments)
		return err
	})
	if err != nil {
		t.Fatalf("declare %s: %v", name, err)
	}
}

func factsAreRead(t *testing.T, conn *connection) {
	for name, c := range map[string]struct {
		facts queueFacts
		kind  string
		sent  table
	}{
		"plain quorum":  {queueFacts{durable: true, arguments: table{}}, typeQuorum, table{"x-queue-type": "quorum"}},
		"plain classic": {queueFacts{durable: true, arguments: table{}}, typeClassic, nil},
		"typed classic": {queueFacts{durable: true, arguments: table{}}, typeClassic, table{"x-queue-type": "classic"}},
		"transient":     {queueFacts{durable: false, arguments: table{}}, typeClassic, nil},
		"auto-delete":   {queueFacts{durable: true, autoDelete: true, arguments: table{}}, typeClassic, nil},
		"full quorum": {
			queueFacts{durable: true, arguments: table{
				"x-delivery-limit": int64(5), "x-dead-letter-exchange": "it's", "x-dead-letter-routing-key": "of type", "x-single-active-consumer": true,
				"x-max-length": int64(100), "x-overflow": "reject-publish",
			}},
			typeQuorum,
			table{
				"x-queue-type": "quorum", "x-delivery-limit": 5, "x-dead-letter-exchange": "it's", "x-dead-letter-routing-key": "of type",
				"x-single-active-consumer": true, "x-max-length": int64(100), "x-overflow": "reject-publish",
			},
		},
		"full classic": {
			queueFacts{durable: true, arguments: table{
				"x-dead-letter-exchange": "", "x-message-ttl": int64(60000), "x-max-priority": int64(5), "x-single-active-consumer": false, "x-expires": int64(3600000),
			}},
			typeClassic,
			table{"x-dead-letter-exchange": "", "x-message-ttl": 60000, "x-max-priority": 5, "x-single-active-consumer": false, "x-expires": 3600000},
		},
	} {
		declared(t, conn, name, c.facts.durable, c.facts.autoDelete, c.sent)
		kind, err := queueType(conn, name)
		if err != nil || kind != c.kind {
			t.Errorf("%s: type %q, %v", name, kind, err)
			continue
		}
		c.facts.arguments["x-queue-type"] = c.kind
		facts, err := factsOf(conn, name, kind)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.facts, facts, cmp.AllowUnexported(queueFacts{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	declared(t, conn, "stream", true, false, table{"x-queue-type": "stream"})
	if kind, err := queueType(conn, "stream"); err != nil || kind != typeStream {
		t.Errorf("stream: type %q, %v", kind, err)
	}
}

// nothingIsCreated asks about a queue that was deleted in the moment before.
func nothingIsCreated(t *testing.T, conn *connection) {
	for name, ask := range map[string]func(queue string) error{
		"facts of quorum":  func(queue string) error { _, err := factsOf(conn, queue, typeQuorum); return err },
		"facts of classic": func(queue string) error { _, err := factsOf(conn, queue, typeClassic); return err },
		"type":             func(queue string) error { _, err := queueType(conn, queue); return err },
		"count":            func(queue string) error { _, _, err := countQueue(conn, queue, accessRead); return err },
		"wait queue":       func(queue string) error { return wouldDeclare(conn, queue, waitArguments("orders", time.Minute)) },
		"letters":          func(queue string) error { return wouldDeclare(conn, queue, table{"x-queue-type": "quorum"}) },
	} {
		queue := "gone " + name
		if err := ask(queue); err == nil {
			t.Errorf("%s: no error for a queue that is not there", name)
		}
		if _, _, err := countQueue(conn, queue, accessRead); whyEnded(err) != endQueueMissing {
			t.Errorf("%s: the queue was created (%v)", name, err)
		}
	}
}

func nothingIsTaken(t *testing.T, conn *connection) {
	for _, kind := range []string{typeQuorum, typeClassic} {
		name := "full of " + kind
		declared(t, conn, name, true, false, table{"x-queue-type": kind})
		err := onChannel(conn, func(ch *channel) error {
			if err := ch.Confirm(false); err != nil {
				return err
			}
			confirm, err := ch.PublishWithDeferredConfirm("", name, true, false, letter{})
			if err == nil && !confirm.Wait() {
				err = errNacked
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := queueType(conn, name); err != nil {
			t.Error(err)
		}
		if _, err := factsOf(conn, name, kind); err != nil {
			t.Error(err)
		}
		if messages, consumers, err := countQueue(conn, name, accessRead); err != nil || messages != 1 || consumers != 0 {
			t.Errorf("%s: %d message(s), %d consumer(s), %v", kind, messages, consumers, err)
		}
		err = onChannel(conn, func(ch *channel) error {
			d, ok, err := ch.Get(name, false)
			if err == nil && (!ok || d.Redelivered || d.Headers["x-delivery-count"] != nil && brokerReturns(&d) > 0) {
				t.Errorf("%s: got %v, redelivered %v, headers %v", kind, ok, d.Redelivered, d.Headers)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func declarationsAreForeseen(t *testing.T, conn *connection) {
	arguments := waitArguments("orders", time.Minute)
	if err := wouldDeclare(conn, "wait", arguments); !errors.Is(err, errNotDeclared) {
		t.Errorf("missing: %v", err)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(arguments)), slices.Sorted(maps.Keys(waitArguments("orders", time.Minute)))) {
		t.Error("the arguments were changed")
	}
	declared(t, conn, "wait", true, false, arguments)
	if err := wouldDeclare(conn, "wait", arguments); err != nil {
		t.Errorf("as it is: %v", err)
	}
	err := wouldDeclare(conn, "wait", waitArguments("orders", time.Hour))
	d, differs := parseDifference(err)
	if !differs || d.name != "x-message-ttl" || d.current != "60000" && d.current != int64(60000) {
		t.Errorf("another step: %+v, %v", d, err)
	}
}
