package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// clockVariable names the file that says by how many seconds the clock of a process is wrong: 8 bytes.
const clockVariable = "FAULTS_CLOCK"

// buildJumping builds the program with a clock on the wall that jumps when told to; its monotonic clock goes on, as it does when
// somebody sets a machine's time. Tools that fake the time do so in the C library, which a Go program does not ask for it.
func buildJumping(ctx context.Context) (*testkit.Binary, error) {
	const read = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n"
	const jump = "\tsec, nsec, mono := runtimeNow()\n\tsec += clockError()\n\tif mono == 0 {\n"
	const before = "// Now returns the current local time.\nfunc Now() Time {\n"
	const helper = `var clockOff = func() *int64 {
	off := new(int64)
	name, set := syscall.Getenv("` + clockVariable + `")
	if !set {
		return off
	}
	file, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	defer syscall.Close(file)
	shared, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&shared[0]))
}()

// clockError may be called where nothing but memory can be read.
//
//go:norace
func clockError() int64 {
	if clockOff == nil {
		return 0
	}
	return *clockOff
}

`
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	return buildWith(ctx, []edit{
		{file, read, jump},
		{file, before, helper + before},
		{file, "import (\n", "import (\n\t\"syscall\"\n\t\"unsafe\"\n"},
	})
}

// clockJumped sets the clock of a process wrong, by up to a day either way, and right again.
func clockJumped(_ *stage, r *replica, draw *rand.Rand) error {
	const day = 24 * 60 * 60
	if err := r.setClock(draw.IntN(2*day) - day); err != nil {
		return err
	}
	time.Sleep(between(draw, 500*time.Millisecond, lease))
	return r.setClock(0)
}

// setClock makes the clock of the replica's processes that many seconds fast. They have the file in their memory.
func (r *replica) setClock(seconds int) error {
	file, err := os.OpenFile(r.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(seconds)))
	return errors.Join(err, file.Close())
}
