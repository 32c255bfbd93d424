package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// printOutcome says what the rounds of a scenario came to.
func printOutcome(out io.Writer, sc scenario, o outcome) {
	for _, st := range o.Steps {
		for _, p := range st.Programs {
			if len(p.Figures) > 0 {
				_, _ = fmt.Fprintf(out, "  median %-10s %-3s %s\n", p.Program, st.Label, p.Figures.line(sc.columns))
			}
		}
	}
	for _, v := range o.Verdicts {
		_, _ = fmt.Fprintln(out, "  "+v.line())
	}
}

func (v verdict) line() string {
	word := "met"
	if !v.Met {
		word = "MISSED"
	}
	return fmt.Sprintf("%-36s %12s   bound %-8s %s", v.What, v.Got, v.Bound, word)
}

// printSummary repeats the verdicts of all scenarios in one place.
func printSummary(out io.Writer, all []outcome) {
	for _, o := range all {
		if o.failures > 0 {
			_, _ = fmt.Fprintf(out, "\n%s: %d run(s) FAILED\n", o.Name, o.failures)
		}
	}
	_, _ = fmt.Fprintln(out, "\nbounds:")
	bounds, missed := 0, 0
	for _, o := range all {
		for _, v := range o.Verdicts {
			_, _ = fmt.Fprintf(out, "  %-15s %s\n", o.Name, v.line())
		}
		bounds += len(o.Verdicts)
		missed += len(o.missed())
	}
	_, _ = fmt.Fprintf(out, "%d of %d met\n", bounds-missed, bounds)
}

// markdown is the generated part of the page.
func markdown(all []outcome, scenarios []scenario) string {
	var page strings.Builder
	page.WriteString(machineLines(all))
	page.WriteString("![Charts of the figures below](benchmarks.svg)\n\n### Bounds\n\n")
	page.WriteString(table([]string{"scenario", "figure", "measured", "bound", ""}, boundRows(all)))
	page.WriteString("\n### Figures\n\nMedians of the rounds.\n")
	for _, sc := range scenarios {
		if i := slices.IndexFunc(all, func(o outcome) bool { return o.Name == sc.name }); i >= 0 {
			page.WriteString("\n" + section(sc, all[i]))
		}
	}
	return page.String()
}

// machineLines say where scenarios were measured: one line, or one for each machine and version.
func machineLines(all []outcome) string {
	var machines []string
	on := map[string][]string{}
	for _, o := range all {
		if on[o.Machine] == nil {
			machines = append(machines, o.Machine)
		}
		on[o.Machine] = append(on[o.Machine], "`"+o.Name+"`")
	}
	text := ""
	for _, m := range machines {
		scenarios := ""
		if len(machines) > 1 {
			scenarios = strings.Join(on[m], ", ") + ": "
		}
		text += "Measured on: " + scenarios + m + "\n\n"
	}
	return text
}

func boundRows(all []outcome) [][]string {
	var rows [][]string
	for _, o := range all {
		for _, v := range o.Verdicts {
			word := "met"
			if !v.Met {
				word = "**missed**"
			}
			rows = append(rows, []string{"`" + o.Name + "`", v.What, v.Got, v.Bound, word})
		}
	}
	return rows
}

// section is a scenario's own table.
func section(sc scenario, o outcome) string {
	header := []string{}
	labelled := len(o.Steps) > 1
	if labelled {
		axis := sc.axis
		if axis == "" {
			axis = "part of the run"
		}
		header = append(header, axis)
	}
	header = append(header, "program")
	for _, m := range sc.columns {
		header = append(header, m.title())
	}
	var rows [][]string
	for _, st := range o.Steps {
		for _, p := range st.Programs {
			row := []string{}
			if labelled {
				row = append(row, st.title())
			}
			row = append(row, string(p.Program))
			for _, m := range sc.columns {
				row = append(row, p.cell(m))
			}
			rows = append(rows, row)
		}
	}
	rounds := fmt.Sprintf("%d rounds", o.Rounds)
	if o.Rounds == 1 {
		rounds = "one round"
	}
	return fmt.Sprintf("`%s`: %s (%s)\n\n", sc.name, sc.about, rounds) + table(header, rows)
}

func (s stepOutcome) title() string {
	if s.Label == "" {
		return "all"
	}
	return s.Label
}

func (p programOutcome) cell(m measure) string {
	if value, measured := p.Figures[m]; measured {
		return m.format(value)
	}
	return ""
}

// table is one in Markdown.
func table(header []string, rows [][]string) string {
	var text strings.Builder
	line := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	text.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return text.String()
}
