// Package faults hunts for lost messages and doubled work: several processes of the program, a real broker, a real store, a
// service that misbehaves, and failures of all of them, at random and on top of each other. What everybody wrote down is
// judged by package check. See docs/guarantees.md for how to run it, and what it found.
package faults
