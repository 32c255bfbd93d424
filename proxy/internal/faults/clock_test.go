package faults

import (
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// TestClockJumps: what a process writes into its log has the time of its own clock.
func TestClockJumps(t *testing.T) {
	binary, err := buildJumping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = binary.Remove() }()
	r := &replica{clock: t.TempDir() + "/clock"}
	for _, seconds := range []int{0, -7200, 7200} {
		if err := r.setClock(seconds); err != nil {
			t.Fatal(err)
		}
		env := environment("x", "amqp://127.0.0.1:1/", "redis://127.0.0.1:1/", "127.0.0.1:1")
		env[clockVariable], env["LOG_LEVEL"] = r.clock, "info"
		p, err := testkit.StartReplica(binary.Path, env)
		if err != nil {
			t.Fatal(err)
		}
		line, err := p.Logs.Wait(t.Context(), func(testkit.LogLine) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		text, _ := line.Fields["time"].(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		if wrong := time.Until(at).Round(time.Minute); err != nil || wrong != time.Duration(seconds)*time.Second {
			t.Errorf("its clock is wrong by %v, want %d s (%v): %s", wrong, seconds, err, line.Text)
		}
	}
}
