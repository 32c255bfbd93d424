package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary is the program, built from this module.
type Binary struct {
	Path string

	dir string
}

// Build compiles the program into a folder of its own. Build it once a test process: the compiler's cache makes the
// next one cheap, but the linker still runs. args are more arguments for go build.
func Build(ctx context.Context, race bool, args ...string) (*Binary, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return nil, fmt.Errorf("build program: %w", err)
	}
	dir, err := os.MkdirTemp("", "rabbitonce-build-")
	if err != nil {
		return nil, fmt.Errorf("build program: %w", err)
	}
	b := &Binary{Path: filepath.Join(dir, "rabbitonce"), dir: dir}
	args = append([]string{"build", "-o", b.Path}, args...)
	if race {
		args = append(args, "-race")
	}
	compile := exec.CommandContext(ctx, "go", append(args, ".")...)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build program: %w:\n%s", err, out), b.Remove())
	}
	return b, nil
}

// Remove deletes the binary.
func (b *Binary) Remove() error { return os.RemoveAll(b.dir) }

// ModuleRoot is the folder of the module that the working folder is in.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("find module: the working folder is in none")
	}
	return filepath.Dir(file), nil
}
