package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noEnvironment(string) string { return "" }

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		output string // a part of what is printed, on either side
	}{
		{"usage", []string{"-h"}, exitOK, "RABBITMQ_URL and REDIS_URL"},
		{"list", []string{"-list"}, exitOK, "growth-records"},
		{"unknown flag", []string{"-fast"}, exitUsage, "not defined: -fast"},
		{"stray argument", []string{"standard"}, exitUsage, `argument "standard" is not known`},
		{"no rounds", []string{"-rounds", "0"}, exitUsage, "at least one"},
		{"no such scenario", []string{"-scenario", "dup"}, exitUsage, "only standard, dups"},
		{"broken pattern", []string{"-scenario", "("}, exitUsage, "-scenario: error parsing regexp"},
		{"baseline without settings", []string{"baseline"}, exitFailed, "FORWARD_URL are required"},
		{"floor without settings", []string{"floor"}, exitFailed, `FORWARD_CONCURRENCY is ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var output bytes.Buffer
			if code := command(c.args, noEnvironment, &output, &output); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.Contains(output.String(), c.output) {
				t.Errorf("printed %q, want %q in it", output.String(), c.output)
			}
		})
	}
}

func TestSessionEndsWithItsReader(t *testing.T) {
	read, write, err := os.Pipe()
	must(t, err)
	defer write.Close()
	gone := 0
	out := reader{write, func() { gone++ }}
	if _, err := out.Write([]byte("a")); err != nil || gone != 0 {
		t.Errorf("%v, gone %d times", err, gone)
	}
	must(t, read.Close())
	if _, err := out.Write([]byte("b")); err == nil || gone != 1 {
		t.Errorf("%v, gone %d times", err, gone)
	}
}
