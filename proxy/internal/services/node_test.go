package services

import (
	"strconv"
	"syscall"
)

// startNode starts Node's HTTP server in a cluster of two processes.
func startNode(h *host) {
	server := h.run("node", "node", h.addr, map[string]string{
		"LISTEN": h.addr, "WORKERS": "2", "KEEP_ALIVE_MS": strconv.FormatInt(keepAlive.Milliseconds(), 10),
	}, h.copy("service.js"))
	h.reload = func() error { return h.signal(server, syscall.SIGHUP, "new workers are at work") }
}
