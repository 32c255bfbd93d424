package proxy

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// plain is the setup of a command without flags.
func plain(run func(context.Context, *invocation) error) func(*flag.FlagSet) func(context.Context, *invocation) error {
	return func(*flag.FlagSet) func(context.Context, *invocation) error { return run }
}

func runCommand() Command {
	return Command{
		Name: "run", Short: "consume the queues and POST to the service (the default)",
		Long:  "It ends after SIGTERM or SIGINT, when the requests under way have ended, within SHUTDOWN_GRACE.",
		setup: plain(run),
	}
}

func run(ctx context.Context, c *invocation) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := Load(c.environ, c.version)
	if err != nil {
		return err
	}
	log := slog.New(cfg.LogHandler(c.notes))
	slog.SetDefault(log)        // for what libraries print by themselves
	paceHeap(os.Getenv("GOGC")) // the runtime's own, which it has read
	p, err := New(cfg, log)
	if err == nil {
		err = p.Run(ctx)
	}
	if err != nil {
		log.Error("cannot start", "error", err.Error())
		return errLogged
	}
	return nil
}

func healthcheckCommand() Command {
	return Command{
		Name: "healthcheck", Short: "ask the running process on HEALTH_ADDR whether it is alive; exit code 0 or 1",
		setup: plain(func(_ context.Context, c *invocation) error { return Healthcheck(c.environ) }),
	}
}

func versionCommand() Command {
	return Command{
		Name: "version", Short: "print the version",
		setup: plain(func(_ context.Context, c *invocation) error {
			_, err := fmt.Fprintln(c.out, "rabbitonce", c.version)
			return err
		}),
	}
}
