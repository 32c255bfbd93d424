package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // a run did not finish, or lost or doubled a message; with -strict also: a bound was missed
	exitUsage       = 2
	exitInterrupted = 130
)

// The arguments with which this executable is a yardstick instead of the benchmark.
const (
	baselineCommand = "baseline"
	floorCommand    = "floor"
)

func main() { os.Exit(command(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// command runs the benchmark or a yardstick, and returns the exit code.
func command(args []string, getenv func(string) string, out, complaints io.Writer) int {
	if len(args) == 1 && (args[0] == baselineCommand || args[0] == floorCommand) {
		return yardstick(args[0], getenv, complaints)
	}
	o, err := parseOptions(args, getenv, complaints)
	switch {
	case errors.Is(err, errHelp):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintln(complaints, "bench:", err)
		return exitUsage
	case o.list:
		printScenarios(out)
		return exitOK
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Not taken as an interrupt: once a program asks for SIGPIPE it gets one for each socket that the other side has closed.
	signal.Ignore(syscall.SIGPIPE)
	failed, missed, err := runSession(ctx, o, reader{out, stop})
	switch {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(complaints, "\nbench: interrupted: nothing of it is left running")
		return exitInterrupted
	case err != nil:
		_, _ = fmt.Fprintln(complaints, "bench:", err)
		return exitFailed
	case failed > 0:
		_, _ = fmt.Fprintf(complaints, "bench: %d run(s) failed, see FAILED above\n", failed)
		return exitFailed
	case missed > 0 && o.strict:
		_, _ = fmt.Fprintf(complaints, "bench: %d bound(s) missed\n", missed)
		return exitFailed
	}
	return exitOK
}

// reader is who reads the output. When that is nobody any more, as after `make bench | head`, the session ends.
type reader struct {
	io.Writer
	gone func()
}

// Write implements io.Writer.
func (r reader) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if err != nil {
		r.gone()
	}
	return n, err
}

// yardstick runs one until it is killed: an end of its own is a failure.
func yardstick(name string, getenv func(string) string, complaints io.Writer) int {
	cfg, err := consumerConfigFrom(getenv)
	if err == nil && name == baselineCommand {
		err = baseline(cfg)
	} else if err == nil {
		err = floor(cfg)
	}
	_, _ = fmt.Fprintf(complaints, "%s: %v\n", name, err)
	return exitFailed
}

// runSession runs the chosen scenarios. Runs that failed, and bounds that were missed, are no error.
func runSession(ctx context.Context, o options, out io.Writer) (failed, missed int, err error) {
	s, err := openSession(ctx, o, out)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var measured []outcome
	for _, sc := range o.scenarios {
		result, err := s.measure(ctx, sc)
		if err != nil {
			return s.failed, missed, fmt.Errorf("measure %s: %w", sc.name, err)
		}
		missed += len(result.missed())
		measured = append(measured, result)
		if !o.record {
			continue
		}
		if err := record(o.docs, measured); err != nil { // at once: a session is long, and may be interrupted
			return s.failed, missed, err
		}
	}
	printSummary(out, measured)
	return s.failed, missed, nil
}
