package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// replica is one process of the program at a time, with its own ways to the others. Its process is started and ended by one
// goroutine; the rest is safe for concurrent use.
type replica struct {
	name                   string
	binary                 string
	settings               map[string]string
	clock                  string // a file, see setClock; empty: the binary's clock cannot jump
	brokerURL, storeURL    string // through the proxies
	broker, store, service *testkit.FaultProxy

	mu        sync.Mutex
	running   *testkit.Replica
	lives     []check.Process // the last one is running's
	troubles  []error         // of processes that have ended
	startedAs int             // how many were started
}

func (r *replica) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startedAs++
	name := fmt.Sprintf("%s.%d", r.name, r.startedAs)
	env := environment(name, r.brokerURL, r.storeURL, r.service.Addr)
	maps.Copy(env, r.settings)
	if r.clock != "" {
		env[clockVariable] = r.clock
	}
	running, err := testkit.StartReplica(r.binary, env)
	if err != nil {
		return err
	}
	r.running = running
	r.lives = append(r.lives, check.Process{Name: name, Life: check.Span{From: time.Now()}})
	return nil
}

// process is the name of the one that runs.
func (r *replica) process() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives[len(r.lives)-1].Name
}

// born is when the one that runs was started.
func (r *replica) born() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives[len(r.lives)-1].Life.From
}

// during returns the names of the processes that lived then.
func (r *replica) during(span check.Span) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, p := range r.lives {
		if p.Life.From.Before(span.To) && (p.Life.To.IsZero() || p.Life.To.After(span.From)) {
			names = append(names, p.Name)
		}
	}
	return names
}

func (r *replica) current() *testkit.Replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// ended writes down the end of the process, and what it complained of.
func (r *replica) ended(killed bool, troubles ...error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	life := &r.lives[len(r.lives)-1]
	life.Life.To, life.Killed = time.Now(), killed
	troubles = append(troubles, alarm(life.Name, r.running))
	r.troubles = append(r.troubles, errors.Join(troubles...))
}

// kill ends the process with SIGKILL, and starts another after a pause.
func (r *replica) kill(pause time.Duration) error {
	err := r.current().Kill()
	r.ended(true)
	return errors.Join(err, r.next(pause))
}

// terminate ends the process with SIGTERM, and starts another after a pause.
func (r *replica) terminate(pause time.Duration) error {
	running := r.current()
	young := time.Since(r.born()) < time.Second
	err := running.Term()
	ctx, cancel := context.WithTimeout(context.Background(), grace+5*time.Second)
	defer cancel()
	code, waited := running.Wait(ctx)
	if waited == nil && code != 0 && !(code == -1 && young) { // ended by the signal, before it could ask for it
		waited = fmt.Errorf("%s: exit code %d after SIGTERM:\n%s", r.process(), code, running.Logs.Tail(60))
	}
	r.ended(false, waited)
	return errors.Join(err, r.next(pause))
}

func (r *replica) next(pause time.Duration) error {
	err := r.current().Close()
	time.Sleep(pause)
	return errors.Join(err, r.start())
}

// stop stops the process for a while.
func (r *replica) stop(d time.Duration) error {
	running := r.current()
	from := time.Now()
	err := running.Pause()
	time.Sleep(d)
	err = errors.Join(err, running.Resume())
	r.mu.Lock()
	defer r.mu.Unlock()
	life := &r.lives[len(r.lives)-1]
	life.Stops = append(life.Stops, check.Span{From: from, To: time.Now()})
	return err
}

// take returns the processes that lived since the last time, and what went wrong with them.
func (r *replica) take() ([]check.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lives, err := r.lives, errors.Join(r.troubles...)
	last := lives[len(lives)-1]
	last.Stops = nil
	r.lives, r.troubles = []check.Process{last}, nil
	return lives, errors.Join(err, alarm(last.Name, r.running))
}

// alarm is an error when the process has printed what no test may pass over.
func alarm(name string, process *testkit.Replica) error {
	words := process.Alarms()
	if len(words) == 0 {
		return nil
	}
	const shown = 6000
	_, text, _ := strings.Cut(process.Logs.Text(), words[0])
	return fmt.Errorf("%s printed:\n%s%s", name, words[0], text[:min(len(text), shown)])
}

func (r *replica) close() error {
	var err error
	if running := r.current(); running != nil {
		err = running.Close()
	}
	for _, p := range []*testkit.FaultProxy{r.broker, r.store, r.service} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}
