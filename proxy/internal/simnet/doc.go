// Package simnet is a network in memory for tests in a bubble of testing/synctest: connections take time, and can be cut, stalled
// and refused. Everything waits on channels and timers, so that the bubble's time goes on; a write never waits.
package simnet
