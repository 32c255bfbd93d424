//go:build !race

package contract

// raceDetector builds the program under test with the race detector when the tests have it.
const raceDetector = false
