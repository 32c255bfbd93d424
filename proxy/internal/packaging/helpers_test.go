package packaging

import (
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"
)

func itoa(number int) string { return strconv.Itoa(number) }

// seconds reads a whole number of seconds from a duration.
func seconds(t *testing.T, duration string) int {
	t.Helper()
	parsed, err := time.ParseDuration(duration)
	if err != nil {
		t.Fatalf("parse duration: %v", err)
	}
	return int(parsed / time.Second)
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatalf("write file: %v", err)
	}
}

// checkForwardPort fails the test when the sidecar forwards to a port that the service does not have.
func checkForwardPort(t *testing.T, forwardURL string, ports []containerPort) {
	t.Helper()
	parsed, err := url.Parse(forwardURL)
	if err != nil {
		t.Fatalf("parse FORWARD_URL: %v", err)
	}
	for _, port := range ports {
		if parsed.Port() == itoa(port.ContainerPort) {
			return
		}
	}
	t.Errorf("FORWARD_URL is %s, the service listens on %v", forwardURL, ports)
}
