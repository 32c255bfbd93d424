// Command bench measures what rabbitonce costs and how fast it is, beside two yardsticks of its own that run in the same
// session: a baseline, the simplest consumer that a team would write, with no dedup at all; and a floor, how cheap dedup
// can get when no error is handled. Absolute figures drift with the machine, ratios of one session do not. `make bench`
// runs it; docs/benchmarks.md says how to read it and has what was measured last.
//
// # A run
//
// A queue of its own is filled with messages whose IDs nobody had before, and all confirms are waited for. Then a program
// is started in front of a service that this process serves, and what happens is read from outside: POSTs from the
// service's ledger, CPU and memory from /proc, the queue from the broker. A run ends when every ID was POSTed, the queue
// is empty, and the program has fallen quiet. It fails, whatever its figures, when an ID was POSTed too often or never,
// or when something is left in the queue or among the dead letters after the program has ended.
//
// # The parts
//
//   - scenario.go lists what is measured, with the bounds; sweep.go runs a scenario: steps, rounds, and the programs in turn.
//   - run.go is one run; latency.go and idle.go are the other two kinds.
//   - baseline.go and floor.go are the yardsticks: this executable, started with another argument.
//   - service.go is the service. net/http's server would take the larger part of a small machine, so it is written by hand.
//   - result.go has what is kept of a session, report.go the tables, chart.go the SVG, page.go the page that holds them.
//
// # Goroutines
//
// main's goroutine measures. A service owns one goroutine for its listener and one for each connection, and close waits
// for them. Programs end with this process however it ends (see testkit).
package main
