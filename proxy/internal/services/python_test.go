package services

import (
	"strconv"
	"syscall"
)

// Debian's, whose Python is Debian's.
const gunicornPath = "/usr/bin/gunicorn"

const gunicornReloaded = "Hang up: Master"

// startGunicorn starts gunicorn with its default workers: one request a process, each connection closed after one answer.
// A process that takes longer than the limit is killed.
func startGunicorn(h *host) {
	server := runGunicorn(h, []string{h.addr}, "--workers", strconv.Itoa(workers), "--timeout", strconv.Itoa(int(timeLimit.Seconds())))
	h.reload = func() error { return h.signal(server, syscall.SIGHUP, gunicornReloaded) }
}

// startGunicornThreads starts gunicorn with threads, which keep connections.
func startGunicornThreads(h *host) {
	server := runGunicorn(h, []string{h.addr}, "--worker-class", "gthread", "--workers", "2", "--threads", strconv.Itoa(workers/2),
		"--keep-alive", strconv.Itoa(int(keepAlive.Seconds())))
	h.reload = func() error { return h.signal(server, syscall.SIGHUP, gunicornReloaded) }
}

func runGunicorn(h *host, addrs []string, args ...string) *keeper {
	h.t.Helper()
	h.copy("service.py")
	for _, addr := range addrs {
		args = append(args, "--bind", addr)
	}
	args = append(args, "--chdir", h.dir, "service:app")
	return h.run("gunicorn", gunicornPath, addrs[0], map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}, args...)
}
