package services

import (
	"fmt"
	"os/exec"
	"strconv"
)

// startJava starts the HTTP server that is in the JDK: one process, which a restart replaces.
func startJava(h *host) {
	source := h.copy("Service.java")
	if out, err := exec.CommandContext(h.ctx, "javac", "-d", h.dir, source).CombinedOutput(); err != nil {
		h.t.Fatalf("compile the service: %v:\n%s", err, out)
	}
	server := h.run("java", "java", h.addr,
		map[string]string{"LISTEN": h.addr, "WORKERS": strconv.Itoa(workers)},
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		// It closes an idle connection without a look at what has come in, so a second more than rabbitonce keeps one.
		fmt.Sprintf("-Dsun.net.httpserver.idleInterval=%d", int(keepAlive.Seconds())+1),
		// How often it looks for idle connections: every ten seconds by default.
		"-Dsun.net.httpserver.idleTimerScheduleMillis=50", "-Dsun.net.httpserver.clockTick=50",
		"-cp", h.dir, "Service")
	h.reload = server.restart
}
