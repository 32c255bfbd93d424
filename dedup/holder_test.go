package dedup

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holderVariable makes the test binary a process that holds a lease; its value
// is the store's address and the key, separated by a space.
const holderVariable = "DEDUP_TEST_HOLDER"

// holder claims a key, says so, and tells when it lost the lease.
func holder(task string) int {
	address, key, _ := strings.Cut(task, " ")
	s, err := New(Config{Store: StoreRedis, RedisURL: Secret("redis://" + address)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go s.Run(context.Background()) // ends with the process
	c, err := s.Claim(context.Background(), ClaimRequest{
		Key: key, Token: NewToken(), Lease: time.Second, Retention: keep,
	})
	fmt.Println(c.Verdict, err)
	if c.Lease == nil {
		return 1
	}
	<-c.Lease.Lost()
	settlement, err := s.Wait(context.Background(), c.Lease, 0, WaitFailed)
	fmt.Println("lost, over", c.Lease.Left() <= 0, settlement, err)
	return 0
}

// TestAStoppedProcessLosesItsLease stops a real process, takes its claim over,
// and lets it go on.
func TestAStoppedProcessLosesItsLease(t *testing.T) {
	key := testKey(t)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), holderVariable+"="+shared.address+" "+key)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	expectLine(t, lines, "claimed <nil>\n")
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, shared.config())
	ours := claimWhenFree(t, s, ClaimRequest{Key: key, Token: NewToken(), Lease: lease, Retention: keep})
	if !ours.Record.EverUnknown || ours.Record.Attempts != 2 {
		t.Errorf("taken over: %+v", ours.Record)
	}
	if err := process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expectLine(t, lines, "lost, over true not-ours <nil>\n")
	if err := process.Wait(); err != nil {
		t.Error(err)
	}
	if r, _, err := s.Inspect(context.Background(), key); err != nil || r != ours.Record {
		t.Errorf("the record is now %+v, %v", r, err)
	}
}

func expectLine(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	got, err := lines.ReadString('\n')
	if got != want {
		t.Fatalf("the holder says %q, %v; want %q", got, err, want)
	}
}

// claimWhenFree asks again for as long as the store says so.
func claimWhenFree(t *testing.T, s *Store, r ClaimRequest) Claim {
	t.Helper()
	for {
		c, err := s.Claim(context.Background(), r)
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Verdict == Claimed:
			return c
		case c.Verdict != Busy || c.Wait <= 0 || c.Wait > lease:
			t.Fatalf("claim: %v, wait %v", c.Verdict, c.Wait)
		}
		<-time.After(c.Wait)
	}
}
