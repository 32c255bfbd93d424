// Package forward is the HTTP side: it sends one message to the service as one
// POST and says what became of it.
//
// A Client serves one queue. Post builds the request (headers.go, foreign.go,
// contenttype.go), sends it on a connection of its own or one that was kept
// (post.go, conn.go, pool.go), reads the answer to a bound and turns it into an
// Outcome (classify.go, by the lists of statuses.go). What the operator adds is in
// ownheaders.go and placeholder.go. Probe asks whether the service can take
// requests, Lookup what became of one whose outcome is unknown. No error shows a
// secret, whoever says it (secrets.go).
//
// # Guarantees
//
// One call of Post puts at most one request on the wire. It is sent a second time
// in one case alone: a kept connection took not one byte of it. net/http's
// Transport, which Probe and Lookup use, repeats more than that by itself.
//
// A request that failed is Unreachable only when not one byte of it was handed
// to the operating system. In all other cases without a whole answer it is
// Unknown: the service may have done the work.
//
// # Life cycle and goroutines
//
// New opens nothing. Post runs on the caller's goroutine; a second one writes a
// large body while the answer is read, and has ended when Post returns. A timer
// closes what has been idle for too long. Close closes the idle connections;
// call it when no Post, Probe or Lookup is running.
package forward
