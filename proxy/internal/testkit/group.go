package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupMembers returns the living processes of a process group. Zombies hold no port and no file and are left out, unless
// only their first thread has ended: the others still hold all that the process has.
func groupMembers(group int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var members []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended in between
		}
		pid, state, pgrp, threads := parseStat(string(text))
		if dead := state == "Z" || state == "X"; pgrp == group && (!dead || threads > 1) {
			members = append(members, pid)
		}
	}
	return members
}

// parseStat reads "pid (name) state ppid pgrp ... threads ...". The name may itself hold spaces and parentheses, see
// proc(5).
func parseStat(text string) (pid int, state string, pgrp, threads int) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, "", 0, 0
	}
	fields := strings.Fields(text[end+1:])
	const threadsAt = 17 // field 20 of the line, from the state, which is field 3
	if len(fields) <= threadsAt {
		return 0, "", 0, 0
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(text[:open]))
	pgrp, _ = strconv.Atoi(fields[2])
	threads, _ = strconv.Atoi(fields[threadsAt])
	return pid, fields[0], pgrp, threads
}
