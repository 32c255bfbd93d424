package packaging

import (
	"debug/elf"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// builtBinary is where the Dockerfile's build line puts the binary.
	builtBinary = "/out/rabbitonce"
	// version is what the build line is to write into the binary.
	version = "0.0.0-packaging"
	// sizeLimit is the image's: 20 MB, less the certificate authorities.
	sizeLimit = 19_500_000
)

// TestBuiltBinary runs the Dockerfile's build line on the files of the build context, then what
// the image promises about the binary.
func TestBuiltBinary(t *testing.T) {
	binary := buildAsImage(t)

	t.Run("is static and small", func(t *testing.T) { checkStatic(t, binary) })
	t.Run("knows its version", func(t *testing.T) {
		output, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
		if err != nil || !strings.Contains(string(output), version) {
			t.Errorf("rabbitonce version: %v, %q does not hold %s", err, output, version)
		}
	})
	t.Run("is healthy when livez says so", func(t *testing.T) {
		if err := healthcheck(t, binary, livez(t, http.StatusOK)); err != nil {
			t.Errorf("healthcheck: %v", err)
		}
	})
	t.Run("is unhealthy when livez says so", func(t *testing.T) {
		wantExitCode(t, 1, healthcheck(t, binary, livez(t, http.StatusServiceUnavailable)))
	})
	t.Run("is unhealthy when nothing listens", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		wantExitCode(t, 1, healthcheck(t, binary, server.Listener.Addr().String()))
	})
}

func checkStatic(t *testing.T, binary string) {
	t.Helper()
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("binary asks for a dynamic linker, which scratch does not have")
		}
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > sizeLimit {
		t.Errorf("binary has %d bytes, more than %d", info.Size(), sizeLimit)
	}
}

// livez serves /livez with the given status and returns the server's address.
func livez(t *testing.T, status int) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func healthcheck(t *testing.T, binary, addr string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, "healthcheck")
	command.Env = []string{"HEALTH_ADDR=" + addr}
	return command.Run()
}

func wantExitCode(t *testing.T, code int, err error) {
	t.Helper()
	exit, exited := err.(*exec.ExitError)
	if !exited || exit.ExitCode() != code {
		t.Errorf("got %v, want exit code %d", err, code)
	}
}

// buildAsImage runs the Dockerfile's build line in a copy of the build context, the binary's path
// aside, and returns that path.
func buildAsImage(t *testing.T) string {
	t.Helper()
	context, binary := t.TempDir(), filepath.Join(t.TempDir(), "rabbitonce")
	copyBuildContext(t, context)
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(buildLine(t), builtBinary, binary, 1))
	command.Dir = context
	command.Env = append(os.Environ(), "VERSION="+version)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("run build line: %v\n%s", err, output)
	}
	return binary
}

func buildLine(t *testing.T) string {
	t.Helper()
	for _, instruction := range readDockerfile(t) {
		if instruction.name == "RUN" && strings.Contains(instruction.args, "go build") {
			if !strings.Contains(instruction.args, "-o "+builtBinary) {
				t.Fatalf("build line does not write %s: %s", builtBinary, instruction.args)
			}
			return instruction.args
		}
	}
	t.Fatal("Dockerfile has no go build line")
	return ""
}

// copyBuildContext copies what .dockerignore lets into the image's build context.
func copyBuildContext(t *testing.T, target string) {
	t.Helper()
	rules := readIgnoreRules(t)
	root := repositoryPath(".")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil || name == ".":
			return err
		case !rules.admit(filepath.ToSlash(name), entry.IsDir()) && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir():
			return os.Mkdir(filepath.Join(target, name), 0o755)
		case !rules.admit(filepath.ToSlash(name), false):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, name), content, 0o644)
	})
	if err != nil {
		t.Fatalf("copy build context: %v", err)
	}
}
