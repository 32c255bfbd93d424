package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// portMapper is an epmd of the kit's own, in the foreground and in a guarded group. Without it a node would start one as a
// daemon that outlives it. The nodes of a cluster share one: through it they find each other.
type portMapper struct {
	port    port
	dir     string
	process *process
}

func startPortMapper(ctx context.Context, programs brokerPrograms) (*portMapper, error) {
	reserved, err := reservePort()
	if err != nil {
		return nil, err
	}
	m := &portMapper{port: reserved}
	if err := m.start(ctx, programs); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *portMapper) start(ctx context.Context, programs brokerPrograms) error {
	var err error
	if m.dir, err = os.MkdirTemp("", "rabbitonce-epmd-"); err != nil {
		return err
	}
	logPath := filepath.Join(m.dir, "epmd.log")
	log, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	path, args := programs.root.wrap(programs.epmd, "-address", "127.0.0.1", "-port", strconv.Itoa(m.port.number))
	env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	m.process, err = command{name: "epmd", path: path, args: args, env: env, dir: m.dir, out: log}.start()
	if err != nil {
		return err
	}
	if err := m.process.await(ctx, func() error { return dialable(m.port.address()) }); err != nil {
		return withTail(fmt.Errorf("start epmd: %w", err), logPath)
	}
	return nil
}

func (m *portMapper) close() error {
	var err error
	if m.process != nil {
		err = m.process.kill()
	}
	m.port.release()
	if m.dir != "" {
		err = errors.Join(err, os.RemoveAll(m.dir))
	}
	return err
}
