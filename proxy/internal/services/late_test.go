package services

import (
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// testLate: a request takes longer than the server, or else rabbitonce, gives it. Nobody knows then what becomes of it,
// so it is not sent again.
func testLate(t *testing.T, k kind, h *host) {
	settings := env{"FORWARD_ON_UNKNOWN": "deadletter"}
	if k.late == "" && !k.killsLate {
		settings["FORWARD_TIMEOUT"] = timeLimit.String()
	}
	s := newStand(t, h, settings)
	late := s.batch("late", 1, amqp.Table{"sleep": strconv.Itoa(int((timeLimit + 3*time.Second).Milliseconds()))})[0]
	want := fate{requests: 1, works: 1, reason: "unknown-outcome", statuses: []string{k.late}}
	if k.killsLate {
		want.works = 0
	}
	quick := s.batch("quick", 2*workers, nil)
	if k.serial {
		s.publish(quick...)
		s.done(quick...)
		quick = nil
	}
	s.publish(late)
	s.publish(quick...)
	s.settled(map[string]fate{late.id: want})
}
