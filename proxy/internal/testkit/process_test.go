package testkit

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helper plays a part in another process and returns its exit code.
func helper(part string) int {
	switch part {
	case "parent": // start a child with a grandchild, say their group, and wait to be killed
		p, err := command{name: "child", path: "/bin/sh", args: []string{"-c", "sleep 1000 & sleep 1000"}}.start()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(p.group)
		<-p.done
		return 0
	case "replica": // serve /readyz and /status, log, and end with 7 at SIGTERM
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		mux := http.NewServeMux()
		mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"broker":"up"}`) })
		mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "# HELP a b\nrabbitonce_deliveries_total{queue=\"a b\",outcome=\"done\"} 3\n")
		})
		go func() { _ = http.ListenAndServe(os.Getenv("HEALTH_ADDR"), mux) }()
		fmt.Printf("{\"msg\":\"started\",\"variables\":%d}\nplain text\n", len(os.Environ()))
		<-terminated
		fmt.Println(`{"msg":"stopping"}`)
		return 7
	}
	return 2
}

func TestParseStat(t *testing.T) {
	pid, state, group, threads := parseStat("12 (a b) c) S 1 34 34 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 7 0 100")
	if pid != 12 || state != "S" || group != 34 || threads != 7 {
		t.Errorf("parseStat = %d, %q, %d, %d", pid, state, group, threads)
	}
	for _, text := range []string{"", "12 (a", "12 (a) S", "12 (a) S 1 34 34 0 -1", ") ("} {
		if pid, _, group, _ := parseStat(text); pid != 0 || group != 0 {
			t.Errorf("parseStat(%q) = %d, %d", text, pid, group)
		}
	}
}

// groupEnds fails the test when a process group still has members after a while.
func groupEnds(t *testing.T, group int) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for len(groupMembers(group)) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("still running: %v", groupMembers(group))
		}
	}
}

func TestProcessEndsWithItsGrandchildren(t *testing.T) {
	p, err := command{name: "child", path: "/bin/sh", args: []string{"-c", "sleep 1000 & sleep 1000 & wait"}}.start()
	must(t, err)
	group := p.group
	ctx := within(t, 20*time.Second)
	must(t, p.await(ctx, func() error {
		if n := len(groupMembers(group)); n < 4 { // guard, shell, two sleeps
			return fmt.Errorf("%d members", n)
		}
		return nil
	}))
	must(t, p.kill())
	if left := groupMembers(group); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	must(t, p.kill()) // again is no error
	if err := p.signal(syscall.SIGTERM); err == nil {
		t.Error("signal after the end: no error")
	}
}

func TestProcessThatEndsAloneLeavesNothing(t *testing.T) {
	p, err := command{name: "child", path: "/bin/sh", args: []string{"-c", "sleep 1000 & exit 3"}}.start()
	must(t, err)
	<-p.done
	if left := groupMembers(p.group); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if code := p.child.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

// TestLeaderEndsWithItsGroup: the guard that joins a group ends it as one that leads it does.
func TestLeaderEndsWithItsGroup(t *testing.T) {
	p, err := command{name: "leader", path: "/bin/sh", args: []string{"-c", "sleep 1000 & wait"}, leads: true}.start()
	must(t, err)
	if p.group != p.child.Process.Pid {
		t.Errorf("group %d, want the child's, %d", p.group, p.child.Process.Pid)
	}
	must(t, p.await(within(t, 20*time.Second), func() error {
		if n := len(groupMembers(p.group)); n < 3 { // shell, sleep, guard
			return fmt.Errorf("%d members", n)
		}
		return nil
	}))
	must(t, p.signalAll(syscall.SIGCONT))
	_ = p.pipe.Close() // as the end of this process would
	<-p.done
	groupEnds(t, p.group)
}

func TestStartUnknownProgram(t *testing.T) {
	_, err := command{name: "nothing", path: "/nonexistent"}.start()
	if err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("err = %v", err)
	}
}

func TestStopKillsWhatIgnoresIt(t *testing.T) {
	// The shell says that its trap is set by making the folder's file.
	dir := t.TempDir()
	script := "trap '' TERM; touch ready; while :; do sleep 1; done"
	p, err := command{name: "stubborn", path: "/bin/sh", args: []string{"-c", script}, dir: dir, env: os.Environ()}.start()
	must(t, err)
	must(t, p.await(within(t, 20*time.Second), func() error { _, err := os.Stat(dir + "/ready"); return err }))
	if err := p.stop(within(t, 200*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("stop = %v, want an error that says killed", err)
	}
	groupEnds(t, p.group)
}

// TestKilledParentLeavesNothing kills -9 a process that uses the kit: its children must end with it.
func TestKilledParentLeavesNothing(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperVariable+"=parent")
	out, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	group, err := strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	if len(groupMembers(group)) == 0 {
		t.Fatal("the child is not running")
	}
	must(t, parent.Process.Kill())
	_ = parent.Wait()
	groupEnds(t, group)
}

func TestReservedPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := reservePort()
		must(t, err)
		defer p.release()
		if seen[p.number] {
			t.Fatalf("port %d given twice", p.number)
		}
		seen[p.number] = true
	}
}
