package contract

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// nobody is an address that refuses connections.
const nobody = "127.0.0.1:1"

// TestBrokerSaysNo: whatever the broker objects to, the program waits and tells it in the broker's own words, with what to do.
func TestBrokerSaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why                         string
		user, password, host, vhost string
		words                       []string
	}{
		"one host refuses":   {"login-refused", sidecarUser, "wrong", nobody + "," + shared.broker.Addr, "/", []string{nobody, "connection refused", shared.broker.Addr, "Login was refused"}},
		"unreachable":        {"unreachable", sidecarUser, sidecarPassword, nobody, "/", []string{nobody, "connection refused"}},
		"wrong password":     {"login-refused", sidecarUser, "wrong", shared.broker.Addr, "/", []string{"ACCESS_REFUSED", "Login was refused", "RABBITMQ_PASSWORD"}},
		"no such user":       {"login-refused", "nobody", sidecarPassword, shared.broker.Addr, "/", []string{"ACCESS_REFUSED", "Login was refused"}},
		"no such vhost":      {"vhost-missing", sidecarUser, sidecarPassword, shared.broker.Addr, "nowhere", []string{"vhost", "nowhere", "not found"}},
		"vhost not allowed":  {"permission", strangerUser, sidecarPassword, shared.broker.Addr, "/", []string{"access to vhost '/' refused for user 'stranger'"}},
		"queue not allowed":  {"permission", powerlessUser, sidecarPassword, shared.broker.Addr, "/", []string{"ACCESS_REFUSED", "access to queue 'TestBrokerSaysNo-queue-not-allowed'", "grant", "read ^TestBrokerSaysNo-queue-not-allowed$"}},
		"no such host":       {"unreachable", sidecarUser, sidecarPassword, "rabbit.invalid:5672", "/", []string{"rabbit.invalid"}},
		"every host missing": {"unreachable", sidecarUser, sidecarPassword, nobody + ",127.0.0.1:2", "/", []string{nobody, "127.0.0.1:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := idleBench(t)
			b.publish(text("one", "body"))
			b.replica = launch(t, b.env().with(env{"RABBITMQ_URL": brokerURL(c.user, c.password, c.host, c.vhost)}))
			b.waitMissing(append(c.words, "consumer")...)
			if up := b.metrics()[`rabbitonce_session_up{queue="`+b.queue+`"}`]; up != 0 {
				t.Errorf("session_up is %v", up)
			}
			s := b.waitStatus(func(status) bool { return true })
			ends := b.metrics().byLabel("rabbitonce_session_ends_total", b.queue, "why")
			if got := s.Queues[0].Consumer.Why; got != c.why || ends[c.why] == 0 {
				t.Errorf("the reason is %q, want %q; counted: %v", got, c.why, ends)
			}
			b.stop()
			b.assertPosts(0)
		})
	}
}

// TestMissingQueue is waited for, and never declared.
func TestMissingQueue(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, queue: nameOf(t), service: startService(t)}
	b.replica = launch(t, b.env())
	b.waitMissing("consumer", "NOT_FOUND", "no queue '"+b.queue+"'")
	if there, err := shared.client.Exists(b.queue); err != nil || there {
		t.Errorf("the source queue was declared (%v)", err)
	}
	must(t, shared.client.DeclareClassic(b.queue, nil))
	b.waitState("consuming")
	b.publish(text("one", "body"))
	b.waitOutcomes(map[string]float64{"done": 1})
	b.finish()
}

// TestStream: a stream cannot be settled message by message, and nothing in it is POSTed.
func TestStream(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, queue: nameOf(t), service: startService(t)}
	must(t, shared.client.DeclareQuorum(b.queue, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeStream}))
	b.publish(text("before", "body"))
	b.replica = launch(t, b.env())
	b.waitStatus(func(s status) bool {
		return s.Queues[0].Consumer.Up || s.Store.Up && s.Queues[0].Consumer.Problem != "not reached yet"
	})
	b.publish(text("after", "body")) // a consumer of a stream starts at its end
	b.waitMissing("consumer", "stream", "quorum or classic")
	b.publish(text("later", "body"))
	b.stop()
	b.assertPosts(0)
}

// TestStreamHeaderOnly: a message that was copied out of a stream may still tell its offset there.
func TestStreamHeaderOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := text("one", "body")
	m.Headers = amqp.Table{"x-stream-offset": int64(7)}
	b.publish(m, text("two", "body"))
	b.waitOutcomes(map[string]float64{"done": 2})
	b.finish()
}

// TestSeveralHosts connects to the host that is there.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string]string{
		"first dead": nobody + "," + shared.broker.Addr, "last dead": shared.broker.Addr + "," + nobody, "with spaces": nobody + ", " + shared.broker.Addr,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, env{"RABBITMQ_URL": brokerURL(sidecarUser, sidecarPassword, hosts, "/")})
			b.answer(400, "")
			b.publish(text("one", "body"))
			b.letters(1) // the publisher has to find it too
			b.finish()
		})
	}
}

// TestOddPasswords logs in with passwords that a URL holds only percent-encoded, and that the variables hold as they are.
func TestOddPasswords(t *testing.T) {
	t.Parallel()
	for name, password := range oddPasswords() {
		t.Run(name+" in the URL", func(t *testing.T) {
			t.Parallel()
			newBench(t, env{"RABBITMQ_URL": brokerURL(passwordPrefix+name, password, shared.broker.Addr, "/")})
		})
		t.Run(name+" verbatim", func(t *testing.T) {
			t.Parallel()
			newBench(t, env{
				"RABBITMQ_URL": "amqp://" + shared.broker.Addr, "RABBITMQ_USERNAME": passwordPrefix + name, "RABBITMQ_PASSWORD": password,
			})
		})
		t.Run(name+" in a file", func(t *testing.T) {
			t.Parallel()
			newBench(t, env{
				"RABBITMQ_URL": "amqp://" + shared.broker.Addr, "RABBITMQ_USERNAME": passwordPrefix + name,
				"RABBITMQ_PASSWORD_FILE": writeFile(t, password+"\n"),
			})
		})
	}
}

// TestPasswordAgainstURL: a user that the broker does not let in, with a password that the URL would hold encoded.
func TestPasswordAgainstURL(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	b.replica = launch(t, b.env().with(env{"RABBITMQ_URL": brokerURL(passwordPrefix+"hash", oddPasswords()["utf8"], shared.broker.Addr, "/")}))
	b.waitMissing("ACCESS_REFUSED")
	other := launch(t, b.env().with(env{"RABBITMQ_USERNAME": passwordPrefix + "hash", "RABBITMQ_PASSWORD": oddPasswords()["space"]}))
	other.waitMissing("ACCESS_REFUSED")
}

// TestDeadLetterWithoutPermission: a letter that cannot be published keeps its message in the queue, and it is not POSTed again.
func TestDeadLetterWithoutPermission(t *testing.T) {
	t.Parallel()
	b := idleBench(t)
	b.answer(400, "why")
	b.replica = launch(t, b.env().with(env{"RABBITMQ_URL": brokerURL(readerUser, sidecarPassword, shared.broker.Addr, "/")}))
	b.waitState("consuming")
	b.publish(text("one", "body"), text("one", "body"))
	b.waitMissing("dead letters", "ACCESS_REFUSED", "refused for user 'reader'")
	// Other messages go on.
	b.answer(200, "")
	b.publish(text("two", "body"))
	must(t, b.service.Journal.WaitBegun(within(t), "two", 1))
	b.stop()
	b.replica = launch(t, b.env())
	letters := b.letters(2)
	for _, letter := range letters {
		assertWhy(t, letter.Headers, map[string]any{"reason": "rejected", "attempts": int64(1)})
	}
	b.finish()
	if n := len(b.service.Journal.ByKey("one")); n != 1 {
		t.Errorf("%d POSTs of a message that was rejected once", n)
	}
}
