package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// options are what a session is told.
type options struct {
	brokerURL, redisURL string // "" for throwaway ones
	program             string // the rabbitonce to measure; "" builds it as it is released
	scenarios           []scenario
	rounds              int
	strict              bool   // a missed bound is a failure
	record              bool   // write the page and its charts
	docs                string // the folder that holds them
	list                bool   // say which scenarios there are, and measure nothing
}

// errHelp says that the user asked for the usage, which is printed.
var errHelp = flag.ErrHelp

// parseOptions reads the command line, and where the servers are from the environment.
func parseOptions(args []string, getenv func(string) string, complaints io.Writer) (options, error) {
	o := options{brokerURL: getenv("RABBITMQ_URL"), redisURL: getenv("REDIS_URL")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(complaints)
	pattern := flags.String("scenario", "", "scenarios to measure: a regular expression for whole `names`; without it the quick ones")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of each scenario; figures are medians")
	flags.StringVar(&o.program, "program", "", "rabbitonce `binary` to measure, instead of one that is built")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 when a bound is missed")
	flags.BoolVar(&o.record, "record", false, "write what was measured into the page and its charts")
	flags.StringVar(&o.docs, "docs", "docs", "`folder` of the page and its charts")
	flags.BoolVar(&o.list, "list", false, "list the scenarios")
	flags.Usage = func() {
		_, _ = fmt.Fprint(complaints, "usage: bench [flags]\n\nRABBITMQ_URL and REDIS_URL name servers to use; without them it starts throwaway ones.\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("argument %q is not known: only flags are, or %s or %s alone", flags.Arg(0), baselineCommand, floorCommand)
	}
	if o.rounds < 1 {
		return options{}, fmt.Errorf("-rounds %d: at least one", o.rounds)
	}
	var err error
	o.scenarios, err = choose(allScenarios(), *pattern)
	return o, err
}

// choose returns the scenarios whose whole names match, in their order; the quick ones for "".
func choose(all []scenario, pattern string) ([]scenario, error) {
	if pattern == "" {
		return slices.DeleteFunc(all, func(s scenario) bool { return !s.quick }), nil
	}
	names, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, fmt.Errorf("-scenario: %w", err)
	}
	var known []string
	for _, s := range all {
		known = append(known, s.name)
	}
	chosen := slices.DeleteFunc(all, func(s scenario) bool { return !names.MatchString(s.name) })
	if len(chosen) == 0 {
		return nil, errors.New("-scenario " + pattern + ": there is none of that name, only " + strings.Join(known, ", "))
	}
	return chosen, nil
}
