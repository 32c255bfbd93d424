package proxy

import "fmt"

// DeadLetterMode is what becomes of a message that is given up.
type DeadLetterMode string

const (
	// DeadLetterToQueue publishes it to DEADLETTER_QUEUE, with the reason.
	DeadLetterToQueue DeadLetterMode = "queue"
	// DeadLetterByReject rejects it, so that the broker moves it to the dead-letter exchange of its queue, or drops it
	// when the queue has none (https://www.rabbitmq.com/docs/dlx).
	DeadLetterByReject DeadLetterMode = "reject"
)

// EnvDecode implements envconfig's decoder.
func (m *DeadLetterMode) EnvDecode(value string) error {
	switch mode := DeadLetterMode(value); mode {
	case DeadLetterToQueue, DeadLetterByReject:
		*m = mode
		return nil
	}
	return fmt.Errorf("%q is not one of queue, reject", value)
}

// rejectAdvice is the warning at start: no client can see whether a queue has a dead-letter exchange, which a policy
// may set, nor whether that exchange routes.
func (q *QueueConfig) rejectAdvice() string {
	return fmt.Sprintf("DEADLETTER_MODE=reject: dead letters of queue %s go to the dead-letter exchange of that queue; "+
		"without one, or when no queue is bound to it, the broker drops the message", q.Name)
}

// reject gives the delivery to its queue's dead-letter exchange and tells whether the broker has it. Until then nothing
// is counted: a session that ends before brings the message again, and its record says that it is dead.
func (q *queue) reject(m *message, o obituary) bool {
	if !m.session.rejectNow(m.DeliveryTag) {
		return false
	}
	q.noteDead(m, o)
	return true
}
