package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptLeavesNothing sends the demo the signal of Ctrl-C at work: with throwaway servers, both consumers
// running and a service down.
func TestInterruptLeavesNothing(t *testing.T) {
	// The folder's name marks all that the demo starts; the broker's user must be able to enter it.
	dir, err := os.MkdirTemp("", "rabbitonce-interrupt-")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // then it is killed, and the reading below ends
	defer cancel()
	demo := exec.CommandContext(ctx, os.Args[0])
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "RABBITMQ_URL=") && !strings.HasPrefix(v, "REDIS_URL=") {
			demo.Env = append(demo.Env, v)
		}
	}
	demo.Env = append(demo.Env, demoVariable+"=1", "TMPDIR="+dir)
	pipe, err := demo.StdoutPipe()
	must(t, err)
	must(t, demo.Start())
	reader := bufio.NewReader(pipe)
	output := readUntil(t, reader, "service crashes")
	if len(using(t, dir)) == 0 {
		t.Error("nothing is found of a demo at work: this test would find nothing of one that has ended either")
	}
	must(t, demo.Process.Signal(syscall.SIGINT))
	rest := new(bytes.Buffer)
	_, err = rest.ReadFrom(reader)
	must(t, err)
	_ = demo.Wait()
	output += rest.String()
	if code := demo.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(output, "interrupted: nothing") {
		t.Errorf("exit code %d, want %d; output:\n%s", code, exitInterrupted, output)
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("folders left: %v", left)
	}
	if processes := using(t, dir); len(processes) > 0 {
		t.Errorf("processes left: %q", processes)
	}
}

// readUntil reads until the text has come.
func readUntil(t *testing.T, reader *bufio.Reader, text string) string {
	t.Helper()
	var output strings.Builder
	for !strings.Contains(output.String(), text) {
		b, err := reader.ReadByte()
		if err != nil {
			t.Fatalf("the demo ended before it said %q:\n%s", text, output.String())
		}
		output.WriteByte(b)
	}
	return output.String()
}

// using returns the command lines of the processes that have a folder's name there or in their environment.
func using(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var found []string
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it ended in between
		}
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if bytes.Contains(line, []byte(dir)) || bytes.Contains(environment, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}
