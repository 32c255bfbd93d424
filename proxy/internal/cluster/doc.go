// Package cluster holds the tests of a RabbitMQ cluster that loses nodes: three real nodes on loopback, a quorum queue with a member
// on each, and the built binary, given all three addresses, under a load that does not stop for the fault.
//
// # What is judged
//
// As in package e2e: the service's journal, the broker's own counts, the dead letters. Every ID that the broker confirmed is POSTed once, as
// its first attempt and not flagged, whatever the cluster goes through; nothing is left and nothing is dead; and nobody helps the program.
//
// # Order
//
// The tests share one cluster, since making one takes as long as a test. So they run one after another, and each leaves all nodes
// running. Each has a queue, a service and a replica of its own.
package cluster
