package proxy

// returnsLimit is the broker's count of returns from which on a message goes through a wait queue rather than back.
// Quorum queues up to RabbitMQ 4.2 drop or dead-letter a message that came back more often than their delivery limit,
// 20 unless somebody set another (https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling). A limit may be
// set by a policy, which no client can see, so the count stays low enough for any limit of 2 or more.
const returnsLimit = 2

// arrivalLimit is the same for a message that arrives: it has been with processes that were killed or lost their
// connection, so that one more of these, which no rule here can keep from counting, may be the last. Nothing that ends
// in good order gets a message there, since returnsLimit is lower.
const arrivalLimit = 3

// brokerReturns is how often the broker has handed this message out before, where the queue type counts: it is never
// trusted as an attempt count, but a quorum queue up to 4.2 drops or dead-letters a message that comes back too often.
// The broker writes the header over whatever a publisher put there, but only from the second delivery on.
func brokerReturns(d *delivery) int64 {
	if !d.Redelivered {
		return 0
	}
	switch n := d.Headers["x-delivery-count"].(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	}
	return 0
}
