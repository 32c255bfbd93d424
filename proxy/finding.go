package proxy

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// level is how much a finding matters.
type level uint8

const (
	levelOK   level = iota
	levelInfo       // to know
	levelWarn       // works, and could cost something
	levelFail       // does not work
)

var levelNames = [...]string{levelOK: "ok", levelInfo: "info", levelWarn: "warn", levelFail: "FAIL"}

func (l level) String() string { return levelNames[l] }

// MarshalText is the level in JSON.
func (l level) MarshalText() ([]byte, error) { return []byte(strings.ToLower(l.String())), nil }

// finding is one line of `check`: what was looked at, how it is, and what to do where something is to be done.
type finding struct {
	Level   level  `json:"level"`
	Subject string `json:"subject"` // "queue orders"
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`

	refused string // the broker's user who lacks a permission; "" for any other finding
}

// about makes the findings of one subject.
type about string

func (a about) ok(format string, args ...any) finding {
	return finding{Level: levelOK, Subject: string(a), Message: fmt.Sprintf(format, args...)}
}

func (a about) info(format string, args ...any) finding {
	return finding{Level: levelInfo, Subject: string(a), Message: fmt.Sprintf(format, args...)}
}

func (a about) warn(message, remedy string) finding {
	return finding{Level: levelWarn, Subject: string(a), Message: message, Remedy: remedy}
}

func (a about) fail(message, remedy string) finding {
	return finding{Level: levelFail, Subject: string(a), Message: message, Remedy: remedy}
}

// failed is an error, which says what to do itself.
func (a about) failed(err error) finding {
	f := a.fail(err.Error(), "")
	if t, ok := errors.AsType[*brokerTrouble](err); ok && t.refused != nil {
		f.refused = t.refused.user
	}
	return f
}

// printFindings writes a line each.
func printFindings(out io.Writer, all []finding) error {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Subject))
	}
	for _, f := range all {
		text := f.Message
		if f.Remedy != "" {
			text += ": " + f.Remedy
		}
		text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
		if _, err := fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.Level, width, f.Subject, text); err != nil {
			return err
		}
	}
	return nil
}

// worst is the highest level among findings.
func worst(all []finding) level {
	w := levelOK
	for _, f := range all {
		w = max(w, f.Level)
	}
	return w
}
