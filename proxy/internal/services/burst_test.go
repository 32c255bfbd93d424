package services

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// testBurst: 100 messages at once, more requests at once than the server has workers. The others wait in its backlog, and none is lost there.
func testBurst(t *testing.T, _ kind, h *host) {
	s := newStand(t, h, env{"FORWARD_CONCURRENCY": "16"})
	s.publish(s.batch("burst", 100, amqp.Table{"sleep": int32(30)})...)
	s.settled(nil)
}
