package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// demoVariable makes this test binary run the demo as its main function does.
const demoVariable = "DEMO_MAIN"

// TestMain lets this binary play the plain consumer, which the demo starts from its own executable.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == consumeCommand || os.Getenv(demoVariable) != "" {
		os.Exit(command(os.Args[1:], os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
