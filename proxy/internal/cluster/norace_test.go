//go:build !race

package cluster

const withRace = false
