package proxy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

func checkCommand() Command {
	return Command{
		Name:  "check",
		Short: "check configuration, broker, queues, permissions, store and service; a line each",
		Long: `It needs the environment of the running process and not the process; it takes no message, sends no request but the health check, and
creates and changes nothing but, for a moment, a key of its own in the store. Everything is tried, even when something failed.
Levels: ok, info (to know), warn (works, and could cost something), FAIL (does not work).
Exit code 0 when nothing failed, 1 when something did, 2 when the configuration is wrong.`,
		setup: func(flags *flag.FlagSet) func(context.Context, *invocation) error {
			timeout := flags.Duration("timeout", 10*time.Second, "bound on the whole check")
			rate := flags.Float64("rate", 0, "messages a second of all queues, for a forecast of the store's memory")
			asJSON := flags.Bool("json", false, "print JSON")
			return func(ctx context.Context, c *invocation) error {
				if *timeout <= 0 || *rate < 0 {
					return errUsage{"--timeout must be longer than 0, and --rate not negative"}
				}
				return check(ctx, c, *timeout, *rate, *asJSON)
			}
		},
	}
}

// errCheckFailed and errCheckConfig end a check that has printed what is wrong.
var (
	errCheckFailed = errors.New("check: something failed")
	errCheckConfig = errUsage{"check: the configuration is wrong"}
)

func check(ctx context.Context, c *invocation, timeout time.Duration, rate float64, asJSON bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %v (--timeout)", timeout))
	defer cancel()
	cfg, problems := load(c.environ)
	cfg.Version = c.version
	all := inParallel(
		func() []finding { return checkConfig(cfg, problems) },
		func() []finding { return checkBroker(ctx, cfg) },
		func() []finding { return checkStore(ctx, cfg, rate) },
		func() []finding { return checkServices(ctx, cfg) },
	)
	var err error
	if asJSON {
		err = printJSON(c.out, map[string]any{"findings": all, "worst": worst(all)})
	} else {
		err = printFindings(c.out, all)
	}
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return errCheckConfig
	case worst(all) == levelFail:
		return errCheckFailed
	}
	return nil
}

// inParallel runs checks side by side and returns their findings in order.
func inParallel(checks ...func() []finding) []finding {
	found := make([][]finding, len(checks))
	var work sync.WaitGroup
	for i, c := range checks {
		work.Go(func() { found[i] = c() })
	}
	work.Wait()
	return slices.Concat(found...)
}

// checkConfig reports what Load would say.
func checkConfig(cfg *Config, problems []string) []finding {
	const subject = about("configuration")
	var all []finding
	for _, p := range problems {
		all = append(all, subject.fail(p, ""))
	}
	for _, w := range cfg.Warnings {
		all = append(all, subject.warn(w, ""))
	}
	if len(problems) == 0 {
		all = append([]finding{subject.ok("%d queue(s): %s", len(cfg.Queues), strings.Join(cfg.QueueNames, ", "))}, all...)
	}
	return all
}
