package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// pollInterval paces the questions that can only be asked of a foreign process by asking again.
const pollInterval = 20 * time.Millisecond

// stopGrace is how long a server may take to end after SIGTERM before it is killed.
const stopGrace = 30 * time.Second

// guardScript is the leader of a child's process group. It reads from a pipe whose other end only this process holds;
// end of file means that this process is gone, however it went.
const guardScript = `trap '' INT TERM HUP QUIT TSTP; read _; kill -KILL 0`

// command says what to run and how.
type command struct {
	name string // for errors
	path string
	args []string
	env  []string // the whole environment
	dir  string
	out  *os.File // stdout and stderr

	// leads: the child leads its group, and the guard joins it. For a program that would leave a group that it does not lead,
	// for a session of its own (setsid). It is unguarded for the moment before the guard runs.
	leads bool
}

// process is a running child. The group's id is not given to anybody else before the guard is reaped, which happens last:
// signals to the group never reach a stranger.
type process struct {
	name  string
	group int
	child *exec.Cmd
	guard *exec.Cmd
	pipe  *os.File // the guard's lifeline

	mu     sync.Mutex
	reaped bool // guarded by mu; no signal after this

	done chan struct{} // closed when child, guard and group are gone
	err  error         // of the child's wait; read after done
}

// start runs c in a new guarded group.
func (c command) start() (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	defer read.Close()
	guard := exec.Command("/bin/sh", "-c", guardScript)
	guard.Stdin = read
	guard.Env = []string{}
	child := exec.Command(c.path, c.args...)
	child.Env, child.Dir = c.env, c.dir
	child.Stdout, child.Stderr = c.out, c.out
	p := &process{name: c.name, child: child, guard: guard, pipe: write, done: make(chan struct{})}
	first, second := guard, child
	if c.leads {
		first, second = child, guard
	}
	first.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := first.Start(); err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	p.group = first.Process.Pid
	second.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: p.group}
	if err := second.Start(); err != nil {
		p.reap()
		_ = first.Wait()
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go p.wait()
	return p, nil
}

// wait owns the child's end: whatever the child leaves in its group goes with it.
func (p *process) wait() {
	p.err = p.child.Wait()
	p.reap()
	close(p.done)
}

func (p *process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.group, syscall.SIGKILL)
	for len(groupMembers(p.group)) > 0 {
		time.Sleep(pollInterval)
		_ = syscall.Kill(-p.group, syscall.SIGKILL) // for what was forked in between
	}
	_ = p.guard.Wait()
	_ = p.pipe.Close()
	p.reaped = true
}

// signal reaches the child alone.
func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("signal %s: %w", p.name, os.ErrProcessDone)
	}
	return p.child.Process.Signal(s)
}

// signalAll reaches the child and all it started in its group, but not the guard.
func (p *process) signalAll(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("signal %s: %w", p.name, os.ErrProcessDone)
	}
	for _, pid := range groupMembers(p.group) {
		if pid == p.guard.Process.Pid {
			continue
		}
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal %s: %w", p.name, err)
		}
	}
	return nil
}

// kill ends the group at once and returns when it is gone. A process that is gone already is no error.
func (p *process) kill() error {
	err := p.signalAll(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// stop asks the child to end and returns when the group is gone; after stopGrace or the end of ctx it is killed, which
// is an error.
func (p *process) stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return errors.Join(fmt.Errorf("stop %s: still running, so it was killed", p.name), p.kill())
}

// running tells whether the child has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// await asks ready again and again until it returns nil. It gives up when the process ends or ctx does.
func (p *process) await(ctx context.Context, ready func() error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready (%v)", p.name, p.err)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%v): %w", p.name, err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
