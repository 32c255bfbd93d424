// Command rabbitonce is a sidecar between RabbitMQ and an HTTP service: one successful execution per message ID.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"rabbitonce/proxy"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "dev"

const usage = `usage: rabbitonce [command]
  run          consume the queues and POST to the service (the default)
  healthcheck  ask the running process on HEALTH_ADDR whether it is alive; exit code 0 or 1
  version      print the version
It is configured with environment variables; docs/configuration.md lists them all.
`

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // also: the configuration is wrong
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs one command and returns the exit code.
func command(args []string, stdout, stderr io.Writer) int {
	name := append(args, "run")[0]
	switch {
	case len(args) > 1:
	case name == "run":
		return run(stderr)
	case name == "healthcheck":
		err := proxy.Healthcheck(os.Environ())
		if err == nil {
			return exitOK
		}
		_, _ = fmt.Fprintln(stderr, err)
		return exitFailed
	case name == "version" || name == "--version":
		_, _ = fmt.Fprintln(stdout, "rabbitonce", version)
		return exitOK
	case name == "help" || name == "-h" || name == "--help":
		_, _ = fmt.Fprint(stdout, usage)
		return exitOK
	}
	_, _ = fmt.Fprint(stderr, usage)
	return exitUsage
}

func run(stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := proxy.Load(os.Environ(), version)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitUsage
	}
	log := slog.New(cfg.LogHandler(stderr))
	slog.SetDefault(log) // for what libraries print by themselves
	p, err := proxy.New(cfg, log)
	if err == nil {
		err = p.Run(ctx)
	}
	if err != nil {
		log.Error("cannot start", "error", err.Error())
		return exitFailed
	}
	return exitOK
}
