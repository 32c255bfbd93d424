package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// describeMachine says in a line what figures depend on: cores, CPU, kernel, versions. It names no host.
func describeMachine(ctx context.Context, brokerURL string, s *store, version string) (string, error) {
	broker, err := brokerVersion(brokerURL)
	if err != nil {
		return "", err
	}
	redis, err := s.version(ctx)
	if err != nil {
		return "", err
	}
	cpus, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", fmt.Errorf("describe machine: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", fmt.Errorf("describe machine: %w", err)
	}
	return fmt.Sprintf("%d cores, %s, Linux %s, %s, %s, %s, rabbitonce %s", runtime.NumCPU(), parseCPUModel(string(cpus)),
		parseKernel(string(kernel)), runtime.Version(), broker, redis, version), nil
}

// parseCPUModel reads /proc/cpuinfo; the architecture stands in where it does not tell, as on many ARM machines.
func parseCPUModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return runtime.GOARCH
}

// parseKernel leaves away what a builder has added to the version, such as -amd64.
func parseKernel(release string) string {
	version, _, _ := strings.Cut(strings.TrimSpace(release), "-")
	return version
}

func brokerVersion(url string) (string, error) {
	connection, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return "", fmt.Errorf("ask broker for its version: %w", err)
	}
	product, version := connection.Properties["product"], connection.Properties["version"]
	return fmt.Sprintf("%v %v", product, version), connection.Close()
}

// revision is the commit of the module that the working folder is in.
func revision(ctx context.Context) string {
	root, err := testkit.ModuleRoot(ctx)
	if err != nil {
		return "(unknown)"
	}
	describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	describe.Dir = root
	text, err := describe.Output()
	if err != nil {
		return "(unknown)"
	}
	return strings.TrimSpace(string(text))
}
