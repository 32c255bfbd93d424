package testkit

import (
	"fmt"
	"os"
	"strings"
)

// tailLines is how much of a server's log goes into an error.
const tailLines = 80

// withTail adds the end of a log file to an error.
func withTail(err error, path string) error {
	text, readErr := os.ReadFile(path)
	if readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Errorf("%w; the end of its log:\n%s", err, strings.Join(lines, "\n"))
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
