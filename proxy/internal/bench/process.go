package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux that Go runs on (see proc(5)).
const tick = 10 * time.Millisecond

// cpuTime is what a process has used, in user and system mode, all its threads together.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseCPUTime(string(text))
}

// parseCPUTime reads /proc/PID/stat: "pid (name) state ...", with utime and stime as fields 14 and 15. The name may itself
// hold spaces and parentheses.
func parseCPUTime(text string) (time.Duration, error) {
	const utime, stime = 14 - 3, 15 - 3 // counted from the state, which is field 3
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= stime {
		return 0, errors.New("read CPU time: the line is too short")
	}
	user, userErr := strconv.ParseInt(fields[utime], 10, 64)
	system, systemErr := strconv.ParseInt(fields[stime], 10, 64)
	if err := errors.Join(userErr, systemErr); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(user+system) * tick, nil
}

// Lines of /proc/PID/status.
const (
	peakMemory    = "VmHWM" // the largest that the resident set ever was
	currentMemory = "VmRSS"
)

// memory is a size of a process's resident set, in MB of 1,048,576 bytes.
func memory(pid int, which string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return parseMemory(string(text), which)
}

func parseMemory(text, which string) (float64, error) {
	for line := range strings.Lines(text) {
		value, found := strings.CutPrefix(line, which+":")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		if err != nil {
			return 0, fmt.Errorf("read memory: %w", err)
		}
		return kilobytes / 1024, nil
	}
	return 0, fmt.Errorf("read memory: there is no line %s", which)
}
