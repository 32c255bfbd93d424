// Package check decides whether a run under faults kept the promises. It knows nothing of the program: it reads what the
// publisher, the network, the service, the store and the broker's queues wrote down, and compares that with what
// docs/guarantees.md says.
//
// A rule that is broken is a Violation. What the promises leave open is counted as a Remark, so that a run shows how often it
// came to that.
package check
