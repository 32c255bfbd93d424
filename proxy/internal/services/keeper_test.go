package services

import (
	"context"
	"errors"
	"sync"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// startTime bounds the start of a server on a busy machine.
const startTime = 2 * time.Minute

// keeper runs a program and starts it again when it dies, as whatever runs a container does.
type keeper struct {
	ctx     context.Context // ends with the test
	options testkit.ProgramOptions
	ready   func() error

	watchers sync.WaitGroup // one for each start
	deaths   chan struct{}  // a value for each end that nobody asked for, before the next start

	mu      sync.Mutex       // held while the program starts or stops
	program *testkit.Program // nil: not wanted now
	problem error            // of a start that nobody waited for
}

func (k *keeper) start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.startLocked()
}

func (k *keeper) startLocked() error {
	ctx, cancel := context.WithTimeout(k.ctx, startTime)
	defer cancel()
	program, err := testkit.StartProgram(ctx, k.options, k.ready)
	for again := 0; err != nil && ctx.Err() == nil && again < 2; again++ {
		k.died() // a request that came before it was seen to be ready has killed it
		program, err = testkit.StartProgram(ctx, k.options, k.ready)
	}
	if err != nil {
		return err
	}
	k.program = program
	k.watchers.Go(func() { k.watch(program) })
	return nil
}

// died counts an end that nobody asked for.
func (k *keeper) died() {
	select {
	case k.deaths <- struct{}{}:
	default: // nobody counts them
	}
}

// watch waits for the end of one start and replaces it, unless it was ended on purpose.
func (k *keeper) watch(program *testkit.Program) {
	<-program.Exited()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.program != program {
		return
	}
	k.program = nil
	k.died()
	k.problem = errors.Join(k.problem, k.startLocked())
}

// do gives the program to a function when it is running.
func (k *keeper) do(with func(*testkit.Program) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.program == nil {
		return errors.New(k.options.Name + " is not running")
	}
	return with(k.program)
}

// stop asks the program to end and returns when it is gone.
func (k *keeper) stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	program := k.program
	if program == nil {
		return nil
	}
	k.program = nil
	return program.Stop(k.ctx)
}

// restart is stop, then start.
func (k *keeper) restart() error { return errors.Join(k.stop(), k.start()) }

// close ends the program for good, and says what went wrong with it meanwhile.
func (k *keeper) close() error {
	k.mu.Lock()
	program := k.program
	k.program = nil
	problem := k.problem
	k.mu.Unlock()
	if program != nil {
		problem = errors.Join(problem, program.Kill())
	}
	k.watchers.Wait()
	return problem
}
