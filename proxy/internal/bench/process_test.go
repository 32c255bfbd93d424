package main

import (
	"os"
	"testing"
	"time"
)

func TestCPUTimeIsParsed(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       time.Duration
		wrong      bool
	}{
		{name: "usual", text: "42 (bench)" + " S 1 2 3 0 -1 4194304 100 0 0 0 150 25 0 0 20 0 8 0", want: 1750 * time.Millisecond},
		{name: "a name with spaces and parentheses", text: "42 (a ) b (c)" + " S 1 2 3 0 -1 4194304 100 0 0 0 1 2 0 0 20 0", want: 30 * time.Millisecond},
		{name: "short", text: "42 (bench) S 1 2", wrong: true},
		{name: "no number", text: "42 (bench) S 1 2 3 0 -1 4194304 100 0 0 0 x 25 0 0", wrong: true},
		{name: "empty", wrong: true},
	} {
		got, err := parseCPUTime(c.text)
		if got != c.want || (err != nil) != c.wrong {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestMemoryIsParsed(t *testing.T) {
	const text = "Name:\tbench\nVmPeak:\t 2000 kB\nVmHWM:\t   35840 kB\nVmRSS:\t   15360 kB\n"
	for which, want := range map[string]float64{peakMemory: 35, currentMemory: 15} {
		got, err := parseMemory(text, which)
		must(t, err)
		if got != want {
			t.Errorf("%s is %v, want %v", which, got, want)
		}
	}
	for _, broken := range []string{"", "VmRSS:\t many kB\n"} {
		if _, err := parseMemory(broken, currentMemory); err == nil {
			t.Errorf("%q is no error", broken)
		}
	}
}

func TestOwnProcessIsRead(t *testing.T) {
	if _, err := cpuTime(os.Getpid()); err != nil {
		t.Error(err)
	}
	size, err := memory(os.Getpid(), peakMemory)
	if err != nil || size < 1 {
		t.Errorf("%v MB, %v", size, err)
	}
}

func TestCPUModelIsParsed(t *testing.T) {
	if got := parseCPUModel("processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nmodel\t: 3\n"); got != "Some CPU @ 2 GHz" {
		t.Errorf("model %q", got)
	}
	if got := parseCPUModel("processor\t: 0\n"); got == "" {
		t.Error("a machine that does not tell has no architecture either")
	}
}

func TestKernelIsParsed(t *testing.T) {
	for release, want := range map[string]string{"6.1.0-32-amd64\n": "6.1.0", "6.12.5\n": "6.12.5"} {
		if got := parseKernel(release); got != want {
			t.Errorf("kernel %q, want %q", got, want)
		}
	}
}

func TestStoreVersionIsParsed(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\nos:Linux\r\n":          "Redis 7.0.15",
		"redis_version:7.2.4\r\nvalkey_version:8.1.1\r\nos:Linux\r": "Valkey 8.1.1",
	} {
		if got := parseStoreVersion(info); got != want {
			t.Errorf("version %q, want %q", got, want)
		}
	}
}
