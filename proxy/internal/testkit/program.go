package testkit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ProgramOptions say what StartProgram runs and how.
type ProgramOptions struct {
	Name    string // for errors
	Path    string
	Args    []string
	Env     map[string]string // the whole environment
	Dir     string            // the working folder
	LogPath string            // what the program writes, over all its starts
	Leads   bool              // it would leave its process group, for a session of its own, if it did not lead the group
}

// Program is a server that the kit knows nothing of, such as the one that a service runs on. It must stay in the
// foreground and in its process group.
type Program struct {
	logPath string
	process *process
}

// StartProgram runs a program and returns once ready, which is asked again and again, says nil.
func StartProgram(ctx context.Context, options ProgramOptions, ready func() error) (*Program, error) {
	log, err := openLog(options.LogPath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", options.Name, err)
	}
	defer log.Close()
	started, err := command{
		name: options.Name, path: options.Path, args: options.Args, env: environ(options.Env), dir: options.Dir, out: log,
		leads: options.Leads,
	}.start()
	if err != nil {
		return nil, err
	}
	p := &Program{logPath: options.LogPath, process: started}
	if err := started.await(ctx, ready); err != nil {
		return nil, withTail(errors.Join(fmt.Errorf("start %s: %w", options.Name, err), started.kill()), options.LogPath)
	}
	return p, nil
}

// Signal reaches the program alone, not what it started.
func (p *Program) Signal(s syscall.Signal) error { return p.process.signal(s) }

// Exited is closed when the program and all it started have ended.
func (p *Program) Exited() <-chan struct{} { return p.process.done }

// Await returns nil once the condition, which is asked again and again, says nil. It gives up when the program ends.
func (p *Program) Await(ctx context.Context, condition func() error) error {
	if err := p.process.await(ctx, condition); err != nil {
		return withTail(err, p.logPath)
	}
	return nil
}

// Stop asks the program to end and returns when it is gone with all it started.
func (p *Program) Stop(ctx context.Context) error { return p.process.stop(ctx) }

// Kill ends the program and all it started with SIGKILL.
func (p *Program) Kill() error { return p.process.kill() }

// ReserveAddr returns a loopback address, 127.0.0.1:PORT, that no other user of the kit is given before release.
func ReserveAddr() (addr string, release func(), err error) {
	reserved, err := reservePort()
	if err != nil {
		return "", nil, err
	}
	return reserved.address(), reserved.release, nil
}
