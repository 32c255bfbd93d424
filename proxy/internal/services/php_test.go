package services

import (
	"cmp"
	"fmt"
	"path/filepath"
	"syscall"
)

// startPHP starts the server that PHP has built in: one process, one request at a time, each connection closed after one
// answer, no reload. With PHP_CLI_SERVER_WORKERS there are more processes, but each takes connections that then wait for
// its own request, so that a slow one holds up others at random.
func startPHP(h *host) {
	server := h.run("php", "php", h.addr, nil, "-S", h.addr, h.copy("service.php"))
	h.reload = server.restart
}

// startPHPFPM starts php-fpm, and nginx in front of it.
func startPHPFPM(h *host) {
	h.copy("service.php")
	program, err := findFPM()
	h.must(err)
	// -R: allowed to run as root, which it does only when the tests do.
	// It makes itself the leader of a session, in the foreground too.
	fpm := h.runLeader("php-fpm", program, filepath.Join(h.dir, "fpm.sock"),
		"-R", "--nodaemonize", "--fpm-config", h.configure("php-fpm.conf"))
	nginx := runNginx(h)
	h.reload = func() error {
		return cmp.Or(
			h.signal(fpm, syscall.SIGUSR2, "ready to handle connections"),
			h.signal(nginx, syscall.SIGHUP, nginxReloaded),
		)
	}
}

// findFPM finds the program, which Debian names by its version.
func findFPM() (string, error) {
	found, err := filepath.Glob("/usr/sbin/php-fpm*")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is no php-fpm: run .ci/install")
	}
	if err != nil {
		return "", err
	}
	return found[len(found)-1], nil
}
