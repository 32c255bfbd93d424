package main

import (
	"fmt"
	"io"
	"strings"
)

// printer writes what a person sees.
type printer struct {
	out   io.Writer
	color palette

	title string // of the event that is under way
}

func (p *printer) line(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

// Widths of the columns, without colour.
const (
	titleWidth   = 45
	verdictWidth = 15
)

// event begins a line with what happens. Its results follow when they are known.
func (p *printer) event(title string) { p.begin(title, title) }

// trouble is event for something that breaks.
func (p *printer) trouble(title string) { p.begin(title, p.color.trouble(title)) }

func (p *printer) begin(title, painted string) {
	p.title = title
	_, _ = fmt.Fprint(p.out, pad(title, painted, titleWidth))
}

// results ends the line of an event.
func (p *printer) results(plain, rabbitonce verdict) {
	p.line(" plain: %s | rabbitonce: %s",
		pad(plain.text, p.color.result(plain.worst, plain.text), verdictWidth), p.color.result(rabbitonce.worst, rabbitonce.text))
	p.title = ""
}

// breakOff ends the line of an event that has no results.
func (p *printer) breakOff() {
	if p.title != "" {
		p.line("")
		p.title = ""
	}
}

// pad fills painted up to a width, given the text without its colour.
func pad(text, painted string, width int) string {
	return painted + strings.Repeat(" ", max(0, width-len(text)))
}

// table prints both tallies, and the IDs behind the figures that matter.
func (p *printer) table(plain, rabbitonce tally) {
	p.line("\n%-18s%10s%14s", "", "plain", "rabbitonce")
	row := func(name string, value func(tally) int) {
		p.line("%-18s%10d%14d", name, value(plain), value(rabbitonce))
	}
	row("published", func(t tally) int { return t.published })
	row("distinct orders", func(t tally) int { return t.distinct })
	row("charges", func(t tally) int { return t.charges })
	p.bad("charged twice", len(plain.twice), len(rabbitonce.twice))
	p.bad("lost", len(plain.lost), len(rabbitonce.lost))
	row("dead letters", func(t tally) int { return len(t.letters) })
	for _, reason := range reasons(plain, rabbitonce) {
		row("  "+reason, func(t tally) int { return occurrences(t.reasons())[reason] })
	}
	row("needs a person", func(t tally) int { return len(t.person) })
	p.line("")
	p.faults("plain", plain)
	p.faults("rabbitonce", rabbitonce)
	for _, l := range rabbitonce.letters {
		p.line("dead letter: %s, reason %s%s", l.id, l.reason, statusText(l))
	}
	for _, d := range rabbitonce.person {
		text := fmt.Sprintf("needs a person: %s: its outcome is unknown; the service's journal has %d charge(s) of it", d.id, d.charges)
		p.line("%s", p.color.trouble(text))
	}
	if rabbitonce.kept() {
		p.line("%s", p.color.charge("rabbitonce charged no order twice and lost none."))
	}
}

// reasons returns why there are dead letters, each reason once.
func reasons(tallies ...tally) []string {
	var all []string
	for _, t := range tallies {
		all = append(all, t.reasons()...)
	}
	return distinct(all)
}

// bad is a row whose figures should be 0.
func (p *printer) bad(name string, plain, rabbitonce int) {
	cell := func(n, width int) string {
		text := fmt.Sprintf("%*d", width, n)
		if n > 0 {
			return p.color.trouble(text)
		}
		return text
	}
	p.line("%-18s%s%s", name, cell(plain, 10), cell(rabbitonce, 14))
}

func (p *printer) faults(side string, t tally) {
	if len(t.twice) > 0 {
		p.line("%s", p.color.trouble(side+" charged twice: "+strings.Join(t.twice, ", ")))
	}
	if len(t.lost) > 0 {
		p.line("%s", p.color.trouble(side+" lost: "+strings.Join(t.lost, ", ")))
	}
}

func statusText(l letter) string {
	if l.status == "" {
		return ""
	}
	return ", the service answered " + l.status
}
