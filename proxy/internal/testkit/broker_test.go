package testkit

import (
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func openClient(t *testing.T, url string) *Client {
	t.Helper()
	client, err := Dial(url)
	must(t, err)
	closing(t, client)
	return client
}

// TestBroker goes through the life of one node: starting one takes seconds.
func TestBroker(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	broker, err := StartBroker(ctx, BrokerOptions{Config: []string{"heartbeat = 7"}, Logf: t.Logf})
	must(t, err)
	closing(t, broker)
	client := openClient(t, broker.URL)
	must(t, client.DeclareQuorum("orders", nil))

	t.Run("publish and take", func(t *testing.T) {
		var publishings []amqp.Publishing
		for range 700 { // more than a batch
			publishings = append(publishings, amqp.Publishing{Body: []byte("x"), DeliveryMode: amqp.Persistent})
		}
		must(t, client.PublishTo(ctx, "orders", publishings...))
		if ready, _, err := client.Depth("orders"); err != nil || ready != 700 {
			t.Errorf("depth %d, %v", ready, err)
		}
		if taken, err := client.Take(ctx, "orders", 600); err != nil || len(taken) != 600 {
			t.Errorf("took %d, %v", len(taken), err)
		}
		if rest, err := client.Drain("orders"); err != nil || len(rest) != 100 {
			t.Errorf("drained %d, %v", len(rest), err)
		}
		must(t, client.WaitEmpty(ctx, "orders"))
	})

	t.Run("a returned message is an error", func(t *testing.T) {
		err := client.PublishTo(ctx, "missing", amqp.Publishing{})
		if err == nil || !strings.Contains(err.Error(), "NO_ROUTE") {
			t.Errorf("err = %v", err)
		}
		must(t, client.PublishTo(ctx, "orders", amqp.Publishing{})) // the next one is not blamed
	})

	t.Run("fan-out, existence, purge and delete", func(t *testing.T) {
		must(t, client.DeclareExchange("created", "fanout"))
		must(t, client.DeclareClassic("copy", amqp.Table{"x-max-length": 10}))
		must(t, client.Bind("copy", "", "created"))
		must(t, client.Publish(ctx, Message{Exchange: "created", Publishing: amqp.Publishing{}}))
		if ready, _, err := client.Depth("copy"); err != nil || ready != 1 {
			t.Errorf("depth %d, %v", ready, err)
		}
		must(t, client.Purge("copy"))
		must(t, client.Delete("copy"))
		if exists, err := client.Exists("copy"); exists || err != nil {
			t.Errorf("Exists = %v, %v", exists, err)
		}
	})

	t.Run("counts, with what consumers hold", func(t *testing.T) {
		held, err := client.Hold(ctx, "orders", 1, false)
		must(t, err)
		must(t, broker.process.await(ctx, func() error { return wantCounts(t, broker, 0, 1) }))
		must(t, held.Release())
		must(t, broker.process.await(ctx, func() error { return wantCounts(t, broker, 1, 0) }))
	})

	t.Run("an exclusive consumer", func(t *testing.T) {
		must(t, client.DeclareClassic("alone", nil))
		held, err := client.Hold(ctx, "alone", 0, true)
		must(t, err)
		if _, err := client.Hold(ctx, "alone", 0, false); err == nil || !strings.Contains(err.Error(), "exclusive") {
			t.Errorf("a consumer beside it: %v", err)
		}
		must(t, held.Release())
	})

	t.Run("a queue survives kill and start", func(t *testing.T) {
		must(t, broker.Kill())
		if err := dialable(broker.Addr); err == nil {
			t.Error("a killed broker accepts connections")
		}
		must(t, broker.Start(ctx))
		again := openClient(t, broker.URL)
		// Not Depth: a quorum queue that has no leader yet says 0.
		if taken, err := again.Take(ctx, "orders", 1); err != nil || !taken[0].Redelivered {
			t.Errorf("took %+v, %v; want the message again", taken, err)
		}
	})

	t.Run("pause and resume", func(t *testing.T) {
		must(t, broker.Pause())
		dialled := make(chan error, 1)
		go func() {
			c, err := Dial(broker.URL)
			if err == nil {
				err = c.Close()
			}
			dialled <- err
		}()
		select {
		case err := <-dialled:
			t.Errorf("a paused broker answered: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		must(t, broker.Resume())
		must(t, <-dialled)
	})

	t.Run("stop and close leave nothing", func(t *testing.T) {
		must(t, broker.Stop(ctx))
		must(t, broker.Start(ctx))
		node, mapper, dir := broker.process.group, broker.mapper.process.group, broker.dir
		must(t, broker.Close())
		if left := append(groupMembers(node), groupMembers(mapper)...); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("folder left behind: %v", err)
		}
	})
}

type countsDiffer struct{ ready, unacknowledged int }

func (c countsDiffer) Error() string { return "counts differ" }

func wantCounts(t *testing.T, b *Broker, ready, unacknowledged int) error {
	r, u, err := b.QueueCounts(t.Context(), "orders")
	if err == nil && (r != ready || u != unacknowledged) {
		err = countsDiffer{r, u}
	}
	return err
}

func TestBrokerThatCannotStartShowsItsLog(t *testing.T) {
	_, err := StartBroker(within(t, time.Minute), BrokerOptions{Config: []string{"no_such_setting = 1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("err = %v, want the node's complaint", err)
	}
}
