package services

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// testIdle: the server closes connections that were idle for as long as rabbitonce keeps them, and messages come at just
// that time. Each begins on a connection that is open then.
func testIdle(t *testing.T, _ kind, h *host) {
	s := newStand(t, h, nil)
	for pause := keepAlive - 100*time.Millisecond; pause <= keepAlive+100*time.Millisecond; pause += 15 * time.Millisecond {
		messages := s.batch("idle", workers, amqp.Table{"sleep": int32(20)}) // at once, so that there are as many connections
		s.publish(messages...)
		s.done(messages...)
		s.quiet(pause)
	}
	s.settled(nil)
}

// quiet lets time pass: how long nothing comes is the test's subject.
func (s *stand) quiet(length time.Duration) {
	s.t.Helper()
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.t.Fatal("the test ran out of time")
	}
}
