package services

import (
	"cmp"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	apachePath    = "/usr/sbin/apache2"
	apacheModules = "/usr/lib/apache2/modules"
	nginxPath     = "/usr/sbin/nginx"
	nginxReloaded = "(SIGHUP) received from"
)

// startNginx starts nginx in front of gunicorn, which nginx sees as two servers: one is left when it gives the other up.
func startNginx(h *host) {
	backend, addrs := runBackend(h)
	nginx := runNginx(h, addrs...)
	h.reload = func() error {
		return cmp.Or(
			h.signal(backend, syscall.SIGHUP, gunicornReloaded),
			h.signal(nginx, syscall.SIGHUP, nginxReloaded),
		)
	}
}

// startApache starts Apache in front of gunicorn in the same way.
func startApache(h *host) {
	backend, addrs := runBackend(h)
	apache := h.run("apache", apachePath, h.addr, nil, "-f", h.configure("apache.conf", addrs...), "-DFOREGROUND")
	h.reload = func() error {
		return cmp.Or(
			h.signal(backend, syscall.SIGHUP, gunicornReloaded),
			h.signal(apache, syscall.SIGUSR1, "resuming normal operations"),
		)
	}
}

// runBackend starts gunicorn at two addresses.
func runBackend(h *host) (*keeper, []string) {
	h.t.Helper()
	addrs := []string{h.reserve(), h.reserve()}
	return runGunicorn(h, addrs, "--workers", strconv.Itoa(workers)), addrs
}

// runNginx starts nginx in front of these addresses, or of php-fpm's socket.
func runNginx(h *host, backends ...string) *keeper {
	h.t.Helper()
	path, err := exec.LookPath(nginxPath)
	if err != nil {
		path = "nginx"
	}
	return h.run("nginx", path, h.addr, nil, "-e", "stderr", "-c", h.configure("nginx.conf", backends...))
}
