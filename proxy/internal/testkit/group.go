package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupMembers returns the living processes of a process group. Zombies hold no port and no file and are left out.
func groupMembers(group int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var members []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended in between
		}
		pid, state, pgrp := parseStat(string(text))
		if pgrp == group && state != "Z" && state != "X" {
			members = append(members, pid)
		}
	}
	return members
}

// parseStat reads "pid (name) state ppid pgrp ...". The name may itself hold spaces and parentheses, see proc(5).
func parseStat(text string) (pid int, state string, pgrp int) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, "", 0
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 3 {
		return 0, "", 0
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(text[:open]))
	pgrp, _ = strconv.Atoi(fields[2])
	return pid, fields[0], pgrp
}
