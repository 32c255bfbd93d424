// Package contract holds the tests that look at the program from the outside: the built binary as a process of its own,
// between a real RabbitMQ, a real Redis and an HTTP service. They hold it to what its documents promise to a user: what
// the service receives, what a dead letter carries, which messages count as the same, what a wrong setting or a missing
// part says, what probes, metrics and log lines show. Crashes and outages under load are the end-to-end tests' subject.
//
// TestMain starts one broker and one Redis for all tests; each test has queues and a key prefix of its own. Every
// replica that a test starts is checked when it ends: exit code 0 after SIGTERM, no data race, each log line valid JSON,
// and no password in anything it wrote or served.
package contract
