// Package forward is the HTTP side: it sends one message to the service as one
// POST and says what became of it.
//
// A Client serves one queue. Post builds the request (headers.go, foreign.go,
// contenttype.go), sends it, reads the answer to a bound and turns it into an
// Outcome (classify.go, by the lists of statuses.go). What the operator adds is in
// ownheaders.go and placeholder.go. Probe asks whether the service can take
// requests, Lookup what became of one whose outcome is unknown. No error shows a
// secret, whoever says it (secrets.go).
//
// # Guarantees
//
// One call of Post puts at most one request on the wire. net/http's Transport
// repeats a request by itself when a kept-alive connection breaks and the
// request looks safe to repeat; an Idempotency-Key makes a POST look safe. Two
// things rule this out: the request has a body that cannot be rewound, even
// when it is empty (client.go), and every connection is guarded (guard.go), so
// that a request of which a byte may have left is never begun a second time.
//
// A request that failed is Unreachable only when not one byte of it was handed
// to the operating system. In all other cases without a whole answer it is
// Unknown: the service may have done the work.
//
// # Life cycle and goroutines
//
// New opens nothing. The goroutines of a connection belong to net/http; they
// end when the connection does. Close closes the idle connections; call it when
// no Post, Probe or Lookup is running.
package forward
