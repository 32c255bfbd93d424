//go:build race

package services

// withRace tells whether these tests, and so the binary that they run, have the race detector on.
const withRace = true
