package proxy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Exit codes of the program.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2 // wrong arguments, or a wrong configuration
)

// Command is one thing that the program can be asked to do on its command line.
type Command struct {
	Name      string
	Arguments string // as the usage line shows them: "QUEUE ID"
	Short     string // its line in the list of commands
	Long      string // what its own help adds
	// setup declares the command's flags and returns what runs it once they are parsed.
	setup func(flags *flag.FlagSet) func(ctx context.Context, c *invocation) error
}

// invocation is one use of a command.
type invocation struct {
	environ []string
	version string
	args    []string  // without flags
	out     io.Writer // the result
	notes   io.Writer // progress, logs and problems
}

// errUsage is a wrong command line; its words are for the person who typed it.
type errUsage struct{ problem string }

func (e errUsage) Error() string { return e.problem }

// errLogged ends a command that has said in the log what went wrong.
var errLogged = errors.New("see the log")

// Commands are all commands but help, in the order in which help lists them.
func Commands() []Command {
	return []Command{
		runCommand(), checkCommand(), inspectCommand(), forgetCommand(), redriveCommand(), healthcheckCommand(), versionCommand(),
	}
}

// Execute runs the command that args name (run when they name none) and returns the exit code.
func Execute(ctx context.Context, version string, args, environ []string, out, notes io.Writer) int {
	if len(args) == 0 {
		args = []string{"run"}
	}
	name, rest := strings.TrimPrefix(args[0], "--"), args[1:]
	if name == "help" || name == "h" || name == "-h" {
		return help(rest, out, notes)
	}
	command, ok := find(name)
	if !ok {
		_, _ = fmt.Fprintf(notes, "there is no command %q\n%s", args[0], usage())
		return ExitUsage
	}
	return command.execute(ctx, &invocation{environ: environ, version: version, args: rest, out: out, notes: notes})
}

func (c Command) execute(ctx context.Context, call *invocation) int {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := c.setup(flags)
	args, err := parseMixed(flags, call.args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprint(call.out, c.help())
		return ExitOK
	}
	if err == nil {
		if want := len(strings.Fields(c.Arguments)); len(args) != want {
			err = fmt.Errorf("%s takes %d argument(s), not %d", c.Name, want, len(args))
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(call.notes, "%v\n%s", err, c.help())
		return ExitUsage
	}
	call.args = args
	err = run(ctx, call)
	var usage errUsage
	var config ConfigError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errLogged):
		return ExitFailed
	case errors.As(err, &usage), errors.As(err, &config):
		_, _ = fmt.Fprintln(call.notes, err)
		return ExitUsage
	}
	_, _ = fmt.Fprintln(call.notes, err)
	return ExitFailed
}

// parseMixed parses flags before, between and after the arguments; after "--" all are arguments.
func parseMixed(flags *flag.FlagSet, given []string) (args []string, err error) {
	for {
		if err := flags.Parse(given); err != nil {
			return nil, err
		}
		rest := flags.Args()
		consumed := given[:len(given)-len(rest)]
		if len(consumed) > 0 && consumed[len(consumed)-1] == "--" || len(rest) == 0 {
			return append(args, rest...), nil
		}
		args, given = append(args, rest[0]), rest[1:]
	}
}

func find(name string) (Command, bool) {
	for _, c := range Commands() {
		if c.Name == name {
			return c, true
		}
	}
	return Command{}, false
}

func help(args []string, out, notes io.Writer) int {
	if len(args) == 0 {
		_, _ = fmt.Fprint(out, usage())
		return ExitOK
	}
	command, ok := find(args[0])
	if !ok {
		_, _ = fmt.Fprintf(notes, "there is no command %q\n%s", args[0], usage())
		return ExitUsage
	}
	_, _ = fmt.Fprint(out, command.help())
	return ExitOK
}

// usage lists the commands.
func usage() string {
	var b strings.Builder
	b.WriteString("usage: rabbitonce [command]\n")
	for _, c := range Commands() {
		fmt.Fprintf(&b, "  %-20s %s\n", strings.TrimSpace(c.Name+" "+c.Arguments), c.Short)
	}
	b.WriteString("  help [command]       this list, or a command's own help\n")
	b.WriteString("It is configured with environment variables; docs/configuration.md lists them all.\n")
	return b.String()
}

// help is the command's own help text.
func (c Command) help() string {
	var b strings.Builder
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	c.setup(flags)
	options := ""
	flags.VisitAll(func(*flag.Flag) { options = " [options]" })
	fmt.Fprintf(&b, "usage: rabbitonce %s%s\n%s\n", strings.TrimSpace(c.Name+" "+c.Arguments), options, c.Short)
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if options != "" {
		b.WriteString("\noptions:\n")
		flags.SetOutput(&b)
		flags.PrintDefaults()
	}
	return b.String()
}
