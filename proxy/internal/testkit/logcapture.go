package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// LogLine is a line of output. Fields is nil when it was not a JSON object.
type LogLine struct {
	Text   string
	Fields map[string]any
}

// Message is the line's msg field.
func (l LogLine) Message() string {
	text, _ := l.Fields["msg"].(string)
	return text
}

// LogCapture collects the output of a process. It is safe for concurrent use.
type LogCapture struct {
	mu      sync.Mutex
	lines   []LogLine
	changed chan struct{} // closed and replaced at each line
	ended   chan struct{} // closed when the output has ended
}

// captureLog reads until the end of the output and then closes it.
func captureLog(output io.ReadCloser) *LogCapture {
	c := &LogCapture{changed: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer output.Close()
		reader := bufio.NewReader(output)
		for {
			text, err := reader.ReadString('\n')
			if text != "" {
				c.add(strings.TrimSuffix(text, "\n"))
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *LogCapture) add(text string) {
	line := LogLine{Text: text}
	_ = json.Unmarshal([]byte(text), &line.Fields)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Lines returns a copy of the lines so far.
func (c *LogCapture) Lines() []LogLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// Find returns the lines that match.
func (c *LogCapture) Find(match func(LogLine) bool) []LogLine {
	return slices.DeleteFunc(c.Lines(), func(l LogLine) bool { return !match(l) })
}

// Text returns all output so far.
func (c *LogCapture) Text() string { return c.Tail(-1) }

// Tail returns the last n lines; a negative n is all.
func (c *LogCapture) Tail(n int) string {
	lines := c.Lines()
	if n >= 0 {
		lines = lines[max(0, len(lines)-n):]
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.Text + "\n")
	}
	return text.String()
}

// Wait returns the first line that matches, past or to come. It gives up when the output ends.
func (c *LogCapture) Wait(ctx context.Context, match func(LogLine) bool) (LogLine, error) {
	seen := 0
	for {
		ended := c.isEnded() // before the look: the last lines come before the end
		c.mu.Lock()
		fresh, changed := c.lines[seen:], c.changed
		c.mu.Unlock()
		if i := slices.IndexFunc(fresh, match); i >= 0 {
			return fresh[i], nil
		}
		seen += len(fresh)
		if ended {
			return LogLine{}, fmt.Errorf("wait for a log line: the output has ended with:\n%s", c.Tail(tailLines))
		}
		select {
		case <-changed:
		case <-c.ended:
		case <-ctx.Done():
			return LogLine{}, fmt.Errorf("wait for a log line: %w; the last were:\n%s", context.Cause(ctx), c.Tail(tailLines))
		}
	}
}

func (c *LogCapture) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *LogCapture) wait() { <-c.ended }
