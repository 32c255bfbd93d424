package main

import (
	"os"
	"strings"
	"testing"

	"rabbitonce/proxy"
)

func TestCommands(t *testing.T) {
	for _, name := range []string{"RABBITMQ_URL", "REDIS_URL", "QUEUES", "FORWARD_URL"} {
		t.Setenv(name, "") // set but empty counts as unset
	}
	t.Setenv("HEALTH_ADDR", "127.0.0.1:1") // nobody listens there
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"version":              {[]string{"version"}, proxy.ExitOK, "rabbitonce dev\n", ""},
		"help":                 {[]string{"--help"}, proxy.ExitOK, "usage: rabbitonce", ""},
		"unknown":              {[]string{"consume"}, proxy.ExitUsage, "", "usage: rabbitonce"},
		"help for one":         {[]string{"help", "run"}, proxy.ExitOK, "SIGTERM", ""},
		"own help":             {[]string{"healthcheck", "-h"}, proxy.ExitOK, "usage: rabbitonce healthcheck", ""},
		"unknown flag":         {[]string{"version", "--loud"}, proxy.ExitUsage, "", "usage: rabbitonce version"},
		"too many":             {[]string{"run", "now"}, proxy.ExitUsage, "", "usage: rabbitonce"},
		"not configured":       {nil, proxy.ExitUsage, "", "QUEUES: is required"},
		"run, not configured":  {[]string{"run"}, proxy.ExitUsage, "", "RABBITMQ_URL: is required"},
		"check, its help":      {[]string{"check", "--help"}, proxy.ExitOK, "Exit code 0 when nothing failed", ""},
		"inspect, no ID":       {[]string{"inspect", "orders"}, proxy.ExitUsage, "", "usage: rabbitonce inspect QUEUE ID"},
		"inspect, no settings": {[]string{"inspect", "orders", "one"}, proxy.ExitUsage, "", "QUEUES: is required"},
		"forget, no settings":  {[]string{"forget", "orders", "one", "--done"}, proxy.ExitUsage, "", "REDIS_URL: is required"},
		"healthcheck, nothing": {[]string{"healthcheck"}, proxy.ExitFailed, "", "healthcheck"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := proxy.Execute(t.Context(), version, tt.args, os.Environ(), &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.stdout) || tt.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout: %q", stdout.String())
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr: %q", stderr.String())
			}
		})
	}
}

// TestMainIsATableOfContents keeps the wiring out of main.
func TestMainIsATableOfContents(t *testing.T) {
	b, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(b), "\n"); lines > 80 {
		t.Errorf("main.go has %d lines", lines)
	}
}
