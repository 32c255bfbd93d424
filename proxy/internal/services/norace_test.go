//go:build !race

package services

const withRace = false
