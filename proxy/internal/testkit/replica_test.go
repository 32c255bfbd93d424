package testkit

import (
	"os"
	"testing"
	"time"
)

func startHelperReplica(t *testing.T) *Replica {
	t.Helper()
	r, err := StartReplica(os.Args[0], map[string]string{helperVariable: "replica"})
	must(t, err)
	closing(t, r)
	return r
}

func TestReplicaLife(t *testing.T) {
	ctx := within(t, 30*time.Second)
	r := startHelperReplica(t)
	must(t, r.WaitReady(ctx))
	var status struct{ Broker string }
	must(t, r.Status(ctx, &status))
	if status.Broker != "up" {
		t.Errorf("status %+v", status)
	}
	metrics, err := r.Metrics(ctx)
	must(t, err)
	if metrics[`rabbitonce_deliveries_total{queue="a b",outcome="done"}`] != 3 || len(metrics) != 1 {
		t.Errorf("metrics %v", metrics)
	}
	started, err := r.Logs.Wait(ctx, func(l LogLine) bool { return l.Message() == "started" })
	must(t, err)
	// PATH, HEALTH_ADDR and the one given: nothing of this process's environment.
	if started.Fields["variables"] != 3.0 {
		t.Errorf("the replica saw %v variables, want 3", started.Fields["variables"])
	}
	must(t, r.Pause())
	must(t, r.Resume())
	must(t, r.Term())
	code, err := r.Wait(ctx)
	must(t, err)
	if code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if lines := r.Logs.Lines(); len(lines) != 3 || lines[1].Text != "plain text" || lines[2].Message() != "stopping" {
		t.Errorf("log lines %+v", lines)
	}
	if _, err := r.Logs.Wait(ctx, func(LogLine) bool { return false }); err == nil {
		t.Error("waiting for a line after the end: no error")
	}
	if err := r.WaitReady(ctx); err == nil {
		t.Error("waiting for an ended replica: no error")
	}
}

func TestReplicaKill(t *testing.T) {
	ctx := within(t, 30*time.Second)
	r := startHelperReplica(t)
	must(t, r.WaitReady(ctx))
	must(t, r.Kill())
	if code, err := r.Wait(ctx); err != nil || code != -1 {
		t.Errorf("Wait = %d, %v; want -1", code, err)
	}
}
