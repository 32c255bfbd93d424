package main

import "os"

// palette colours text by its kind: one colour each for a charge, a skip and trouble.
type palette bool

const (
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

func (p palette) charge(text string) string  { return p.paint(green, text) }
func (p palette) skip(text string) string    { return p.paint(cyan, text) }
func (p palette) trouble(text string) string { return p.paint(red, text) }

func (p palette) result(r result, text string) string {
	switch r {
	case resultCharged:
		return p.charge(text)
	case resultSkipped:
		return p.skip(text)
	}
	return p.trouble(text)
}

func (p palette) paint(color, text string) string {
	if !p {
		return text
	}
	return color + text + reset
}

// wantsColor is true for a terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
func wantsColor(out *os.File, getenv func(string) string) bool {
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
