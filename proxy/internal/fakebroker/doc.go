// Package fakebroker is a RabbitMQ in memory, for tests: it speaks AMQP 0-9-1 over any net.Conn, so that the AMQP library and
// the program run on it unchanged, also in a bubble of testing/synctest over connections in memory.
//
// It has what the program uses: the default exchange, classic and quorum queues, consumers with a prefetch, confirms and
// returns, time-to-live, dead-letter routing keys, length and delivery limits, alarms. It is strict where the broker is: what the
// broker answers with the end of a channel or a connection ends it here, in the same words. What it does not know ends the
// connection with 540, NOT_IMPLEMENTED.
//
// The conformance suite (conformance_test.go) holds it to the rules, and runs on a real RabbitMQ too: a rule that is not in the
// suite is not to be relied on.
//
// # Goroutines
//
// Each connection has one goroutine that reads, one that writes and one for heartbeats. All end with the connection; Close ends
// all connections and waits for them. State is guarded by one lock, which nobody holds while he waits.
package fakebroker
