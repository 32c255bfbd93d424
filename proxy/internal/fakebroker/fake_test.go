package fakebroker

import (
	"bufio"
	"net"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// These are about the fake alone: time, and what only it can lose.

// open connects to the fake over a pipe.
func open(t *testing.T, b *Broker, config amqp.Config) *amqp.Connection {
	t.Helper()
	client, served := net.Pipe()
	go b.Serve(served)
	config.SASL = []amqp.Authentication{&amqp.PlainAuth{Username: "guest", Password: "guest"}}
	conn, err := amqp.Open(client, config)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestAnIdleConnectionLivesByItsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		defer b.Close()
		conn := open(t, b, amqp.Config{Vhost: "/", Heartbeat: 10 * time.Second})
		defer func() { _ = conn.Close() }()
		time.Sleep(time.Hour)
		if conn.IsClosed() {
			t.Error("it is closed")
		}
	})
}

func TestASilentClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		defer b.Close()
		client, served := net.Pipe()
		go b.Serve(served)
		defer func() { _ = client.Close() }()
		began := time.Now()
		send := func(m method, fill func(e *encoder)) {
			var arguments, e encoder
			arguments.short(m.class)
			arguments.short(m.number)
			fill(&arguments)
			e.frame(frameMethod, 0, arguments.data)
			_, _ = client.Write(e.data)
		}
		_, _ = client.Write([]byte(protocolHeader))
		r := bufio.NewReader(client)
		_, _ = readFrame(r)
		send(connectionStartOK, func(e *encoder) {
			e.table(nil)
			e.shortstr("PLAIN")
			e.longstr("\x00guest\x00guest")
			e.shortstr("en_US")
		})
		_, _ = readFrame(r)
		send(connectionTuneOK, func(e *encoder) {
			e.short(0)
			e.long(0)
			e.short(10)
		})
		send(connectionOpen, func(e *encoder) { e.shortstr("/") })
		for {
			if _, err := readFrame(r); err != nil {
				break
			}
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("dropped after %v, want two intervals", took)
		}
	})
}

// TestAKilledNodeLosesWhatItHasNotConfirmed publishes to a broker that takes a second to write.
func TestAKilledNodeLosesWhatItHasNotConfirmed(t *testing.T) {
	for _, loses := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := New(Options{CommitTime: func() time.Duration { return time.Second }})
			defer b.Close()
			if err := b.Declare("q", amqp.Table{"x-queue-type": quorum}); err != nil {
				t.Fatal(err)
			}
			conn := open(t, b, amqp.Config{Vhost: "/"})
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			_ = ch.Confirm(false)
			var confirms []*amqp.DeferredConfirmation
			for _, id := range []string{"safe", "not yet"} {
				confirm, err := ch.PublishWithDeferredConfirm("", "q", true, false, amqp.Publishing{MessageId: id, DeliveryMode: 2})
				if err != nil {
					t.Fatal(err)
				}
				confirms = append(confirms, confirm)
				time.Sleep(900 * time.Millisecond)
			}
			b.Kill(Damage{Uncommitted: func() bool { return loses }})
			synctest.Wait()
			if !confirms[0].Acked() || confirms[1].Acked() {
				t.Errorf("confirmed: %t, %t", confirms[0].Acked(), confirms[1].Acked())
			}
			want := 2
			if loses {
				want = 1
			}
			if got := len(b.Messages("q")); got != want {
				t.Errorf("%d messages are left, want %d", got, want)
			}
		})
	}
}

// TestAKilledNodeMayForgetAcknowledgements has a message come back that was acknowledged just before.
func TestAKilledNodeMayForgetAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		defer b.Close()
		if err := b.Declare("q", nil); err != nil {
			t.Fatal(err)
		}
		conn := open(t, b, amqp.Config{Vhost: "/"})
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"old", "late"} {
			_ = ch.Publish("", "q", false, false, amqp.Publishing{MessageId: id, DeliveryMode: 2})
			d, ok, err := ch.Get("q", false)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			time.Sleep(time.Second)
			_ = d.Ack(false)
			synctest.Wait()
		}
		b.Kill(Damage{Acknowledged: func() bool { return true }})
		if got := b.Messages("q"); len(got) != 1 || got[0].ID != "late" {
			t.Errorf("left: %v", got)
		}
	})
}
