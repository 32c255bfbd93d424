// Package testkit runs the real things that rabbitonce works with, and breaks them on demand: a private RabbitMQ
// node, a private Redis server, a TCP proxy that injects faults, an HTTP service that keeps a journal, and replicas of
// the built binary. End-to-end tests, fault suites and the demo share it, so nothing here takes a *testing.T: every
// function returns an error that says what went wrong, with the tail of the server's log where there is one.
//
// # What is private
//
// Each server has its own folder under the system's temporary folder and its own loopback ports, which stay reserved
// until Close (see port), so that a server that was stopped can start again on the same address while other test
// processes run. A broker has a port mapper (epmd) of its own too.
//
// # Which versions
//
// Servers are this machine's, or those of another root: a folder with a whole system, made by .ci/servers, which a program enters with
// mounts of its own. The environment chooses them for a whole test run (environment.go), so every suite runs on every version
// unchanged; make matrix does that. The type of the source queues is chosen alike.
//
// # What is left behind: nothing
//
// Every child runs in a process group of its own, led by a guard: a shell that waits on a pipe to this process and
// kills the group when the pipe closes. Close kills the group; so does the death of this process by any cause, kill -9
// included. Folders are removed by Close only.
//
// # Goroutines
//
// A started child has one goroutine that waits for it; a Replica has one more that reads its output. A FaultProxy owns
// its accept loop and two goroutines a connection, a Service its HTTP server. Close of each waits for all of its own.
//
// The kit needs Linux (/proc, abstract sockets) and the packages that .ci/install brings.
package testkit
