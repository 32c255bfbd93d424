// Package proxy moves deliveries from RabbitMQ queues to an HTTP service, one successful execution per message ID.
//
// # Life of a delivery
//
// receive -> identify -> claim -> POST -> outcome -> record -> settle. [queue.process] is that line as code;
// decideClaim and decideOutcome are its two decisions, pure functions in verdict.go. The claim and its record live in
// package dedup, the POST and its outcome in package forward; this package alone knows both, and the broker.
//
// Before a claim a delivery takes a worker slot (slot.go): throttle.go hands them out, few after a start and one at a time
// while the brake is on, pacer.go spaces the requests.
//
// # Guarantees
//
// A delivery leaves its queue only after the service answered done, or its ID was already recorded done, or a copy in
// the dead-letter queue or in a wait queue was confirmed by the broker, or it was rejected to the queue's own
// dead-letter exchange because the user chose that. docs/guarantees.md says it in full.
//
// # Who owns which goroutine
//
//   - [Proxy.Run] owns the health listener, the store's goroutines, the gates' probers and one supervisor a queue, and
//     returns after all of them.
//   - a supervisor (queue.run) opens one session after another and waits for each;
//   - a session (session.run) is the only one that touches its channel: it takes deliveries in and sends every ack; it
//     starts one goroutine a delivery (queue.handle) and waits for the broker's side of it only: a POST that outlives its
//     session goes on, its outcome is recorded, its settlement is dropped;
//   - queue.run waits for all handlers at the end of the process;
//   - the publisher owns a goroutine for each message that it has under way, which may outlive the handler that waits for
//     it, and ends them all when its connection is closed.
//
// # Three contexts
//
// hold ends when a delivery that is not in a POST has to go back (session ended, drain, pause); work ends when POSTs
// are cut off (the end of SHUTDOWN_GRACE); recording outlives work by a short bound, so that a POST cut off is
// written down as unknown.
package proxy
