package testkit

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperVariable makes this test binary play a part in a process of its own, see helper.
const helperVariable = "TESTKIT_HELPER"

func TestMain(m *testing.M) {
	if part := os.Getenv(helperVariable); part != "" {
		os.Exit(helper(part))
	}
	goleak.VerifyTestMain(m)
}

// within returns a context that ends with the test, and is generous: it turns a hang into a failure.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closing closes at the end of the test, and fails it when that fails.
func closing(t *testing.T, closer interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := closer.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
