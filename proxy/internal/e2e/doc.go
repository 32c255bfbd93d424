// Package e2e holds the end-to-end tests of crashes and outages: a real RabbitMQ, a real Redis, an HTTP service that keeps
// a journal, and replicas of the built binary as processes of their own.
//
// # Where the faults come from
//
// The program has no hooks for tests. Everything is done to it from outside: SIGKILL, SIGTERM and SIGSTOP to its process;
// stops and kills of the servers; and a fault proxy on each of its two connections to servers, which can hold a chosen
// message (a claim's reply, a record of success, an ack). The service itself is the third barrier: it holds a POST as
// long as a test wants. A kill happens at such a barrier, and the test asserts that it was reached.
//
// # What is judged
//
// The service's journal (who was POSTed when, with which headers), the broker's own counts, and the dead letters. The
// program's log, metrics and status only serve as signals, except where a test is about them.
//
// # Names
//
// A [stand] is one test's corner of the shared servers. Each test says in a line beginning "Catches" which mistake in the program
// turns it red.
package e2e
