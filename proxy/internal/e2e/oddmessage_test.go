package e2e

import (
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"rabbitonce/proxy/internal/testkit"
)

// nested is a header that the AMQP library refuses to decode, with the whole connection; the broker takes it.
func nested(depth int) amqp.Table {
	t := amqp.Table{"end": "x"}
	for range depth {
		t = amqp.Table{"t": t}
	}
	return t
}

// Catches: one message that cannot be decoded taking other queues' connections down, or keeping what is before it in its own queue from being worked on; a status that does not say
// what it is.
func TestHeadersThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	other := s.queue + ".other"
	s.declare(other)
	before := ids("before", 5)
	s.publish(before...)
	poison := message("poison")
	poison.Headers = nested(40)
	s.must(s.client.PublishTo(s.ctx, s.queue, poison))
	replica := s.start(env{"QUEUES": s.queue + "," + other})
	replica.waitMissing("cannot be decoded")
	s.answered(before...)
	s.must(s.client.PublishTo(s.ctx, other, message("elsewhere")))
	s.answered("elsewhere")
	// Its head removed, the queue goes on. A new replica need not wait for the next try of the old one.
	replica.term()
	s.must(s.client.Purge(s.queue))
	s.start()
	s.publish("after")
	s.answered("after")
	s.settled()
	s.once(append(before, "elsewhere", "after")...)
}

// Catches: a dead letter whose headers exceed the broker's frame, tried for ever, and a queue whose whole prefetch waits for such letters.
func TestLettersAtTheFrameLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(r testkit.Received) testkit.Action {
		if strings.HasPrefix(r.Key, "big") {
			return testkit.Action{Status: http.StatusBadRequest, Body: []byte(strings.Repeat("why ", 200))}
		}
		return testkit.Action{}
	})
	s.start(env{"PREFETCH": "2", "FORWARD_CONCURRENCY": "2"})
	for _, id := range []string{"big-1", "big-2", "big-3"} {
		m := message(id)
		m.Headers = amqp.Table{"small": "kept", "large": strings.Repeat("x", 130_900)}
		s.must(s.client.PublishTo(s.ctx, s.queue, m))
	}
	s.publish("good")
	s.answered("good")
	for _, l := range s.letters(3) {
		s.lettersOf([]amqp.Delivery{l}, l.MessageId, "rejected")
		if l.Headers["small"] != "kept" || l.Headers["large"] != nil || l.Headers["x-rabbitonce-left-out"] != "large" {
			t.Errorf("letter of %s: small %v, left out %v", l.MessageId, l.Headers["small"], l.Headers["x-rabbitonce-left-out"])
		}
	}
	s.settled()
}

// Catches: one spoilt key taken for a store in trouble, which would hold up every message of the process.
func TestASpoiltKeyHoldsUpItsOwnMessageOnly(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	options, err := redis.ParseURL(s.redis.URL)
	s.must(err)
	client := redis.NewClient(options)
	defer func() { s.closed(client.Close()) }()
	key := s.queue + "://" + s.queue + ":spoilt" // DEDUP_PREFIX is the queue's name
	s.must(client.Set(s.ctx, key, "garbage", 0).Err())
	replica := s.start(env{"RETRY_HOLD": "200ms", "RETRY_BACKOFF": "1s"})
	s.publish("spoilt")
	replica.waitLog("a message cannot be claimed", "id", "spoilt")
	good := ids("good", 50)
	s.publish(good...)
	s.answered(good...)
	s.must(client.Del(s.ctx, key).Err())
	s.answered("spoilt")
	s.settled()
	s.once(append(good, "spoilt")...)
	s.noLetters()
}
