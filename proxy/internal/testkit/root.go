package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// root is the folder of a whole system with servers of another version than this machine's, as .ci/servers makes it. The zero
// value is this machine. Only root (the user) can enter one.
type root string

func newRoot(option, variable string) (root, error) {
	dir := option
	if dir == "" {
		dir = os.Getenv(variable)
	}
	if dir == "" {
		return "", nil
	}
	r := root(dir)
	if !filepath.IsAbs(dir) || !isFile(r.enter()) {
		return "", fmt.Errorf("%s is %q: it must be the absolute path of a folder that .ci/servers made", variable, dir)
	}
	if os.Geteuid() != 0 {
		return "", errors.New("servers in a root of their own can only be started as root (the user)")
	}
	return r, nil
}

// path is the path, seen from outside, of a file in the root.
func (r root) path(inside string) string { return filepath.Join("/", string(r), inside) }

// enter is the program that becomes another one in the root. It mounts what that one needs in a mount namespace of its own:
// with the process all mounts are gone. See .ci/servers.
func (r root) enter() string { return r.path("enter") }

// wrap returns a command line that runs path in the root. It forks nothing: the process is the program.
func (r root) wrap(path string, args ...string) (string, []string) {
	if r == "" {
		return path, args
	}
	return r.enter(), append([]string{path}, args...)
}

// lookUp finds a program: first in these folders; then in the root's /usr/bin, or on this machine's PATH.
func (r root) lookUp(name string, folders ...string) (string, error) {
	if r != "" {
		folders = append(folders, "/usr/bin")
	}
	for _, folder := range folders {
		if inside := filepath.Join(folder, name); isFile(r.path(inside)) {
			return inside, nil
		}
	}
	if r != "" {
		return "", fmt.Errorf("%s is not in %s: delete that folder and run .ci/servers", name, r)
	}
	return exec.LookPath(name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
