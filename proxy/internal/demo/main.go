package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// consumeCommand runs the plain consumer instead of the demo. The demo starts itself with it.
const consumeCommand = "plain-consumer"

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // also: rabbitonce charged an order twice, or lost one
	exitUsage       = 2
	exitInterrupted = 130
)

func main() { os.Exit(command(os.Args[1:], os.Stdout)) }

// command runs the demo or the plain consumer and returns the exit code. SIGPIPE is taken as an interrupt too, so that
// `make demo | head` leaves nothing behind.
func command(args []string, out *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	switch {
	case len(args) == 0:
		return demonstrate(ctx, out)
	case len(args) == 1 && args[0] == consumeCommand:
		return consume(ctx, plainConfigFrom(os.Getenv), out)
	}
	_, _ = fmt.Fprint(out, "usage: demo\n\n  RABBITMQ_URL, REDIS_URL  servers to use; without them the demo starts throwaway ones\n  NO_COLOR                 plain text\n")
	return exitUsage
}

// longest bounds a run on a machine that is far too slow, or that hangs.
const longest = 5 * time.Minute

func demonstrate(ctx context.Context, out *os.File) int {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not done after %v", longest))
	defer cancel()
	began := time.Now()
	result, err := run(ctx, options{
		brokerURL: os.Getenv("RABBITMQ_URL"), redisURL: os.Getenv("REDIS_URL"),
		pace: 60 * time.Millisecond, serviceDown: 3 * time.Second, brokerGone: 2 * time.Second,
		out: out, colored: wantsColor(out, os.Getenv),
	})
	code := exitCode(result, err)
	switch {
	case err == errInterrupted:
		_, _ = fmt.Fprintln(out, "\ninterrupted: nothing of the demo is left running")
	case err != nil:
		_, _ = fmt.Fprintf(out, "\nthe demo failed: %v\n", err)
	case code != exitOK:
		_, _ = fmt.Fprintln(out, "\nthe demo failed: rabbitonce charged an order twice or lost one; the end of its log is above")
	default:
		printNext(out, time.Since(began))
	}
	return code
}

// exitCode says how a run went. A table that was counted is judged by rabbitonce's column alone: that the plain consumer
// does worse is the point.
func exitCode(rabbitonce tally, err error) int {
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(usageError)):
		return exitUsage
	case err != nil || !rabbitonce.kept():
		return exitFailed
	}
	return exitOK
}

// usageError is a mistake in what the demo was given.
type usageError struct{ problem string }

func (e usageError) Error() string { return e.problem }

func printNext(out io.Writer, took time.Duration) {
	_, _ = fmt.Fprintf(out, `
The demo took %.0f s. What to do next:
  make test            unit, conformance and end-to-end tests, against real servers
  README.md            "Put it in front of your service": ten lines of environment variables
  docs/guarantees.md   what it guarantees, what it cannot, and what to do about a dead letter
`, took.Seconds())
}
