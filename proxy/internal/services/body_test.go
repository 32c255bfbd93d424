package services

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

const big = 5 << 20

// testBody: a body of 5 MB arrives whole, and an answer of 5 MB is an answer.
func testBody(t *testing.T, k kind, h *host) {
	s := newStand(t, h, nil)
	s.publish(
		message{id: s.queue + ".request", body: strings.Repeat("0123456789abcdef", big/16)},
		message{id: s.queue + ".answer", body: "{}", headers: amqp.Table{"answer": int32(big)}},
	)
	s.settled(nil)
	if k.bodyLimit {
		t.Run("default-limit", func(t *testing.T) { testBodyLimit(t, h) })
	}
}

// testBodyLimit: without a limit of the operator's, nginx refuses it before the service sees it.
func testBodyLimit(t *testing.T, h *host) {
	s := newStand(t, h, env{"FORWARD_URL": h.url + "/limited"})
	large := message{id: s.queue + ".large", body: strings.Repeat("0123456789abcdef", big/16)}
	s.publish(large)
	s.publish(s.batch("small", 3, nil)...)
	s.settled(map[string]fate{large.id: {reason: "rejected", statuses: []string{"413"}}})
}
