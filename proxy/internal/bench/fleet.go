package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

const (
	// A program is quiet when its CPU clock has stood still for quietFor; it is given quietPatience to get there.
	quietFor      = 100 * time.Millisecond
	quietPatience = 10 * time.Second

	stopPatience = 30 * time.Second
	tailLines    = 20
)

// fleet is a program at work: one process, or several on the same queue.
type fleet struct {
	program  program
	replicas []*testkit.Replica
	began    time.Time
	ended    chan struct{} // closed when the first of them has ended
}

// launch starts the run's program.
func (r *run) launch() (*fleet, error) {
	binary, args := r.session.self, []string{string(r.program)}
	if r.program == programRabbitonce {
		binary, args = r.session.servers.program, nil
	}
	f := &fleet{program: r.program, began: time.Now(), ended: make(chan struct{})}
	for range r.load.replicas {
		replica, err := testkit.StartReplica(binary, r.environment(), args...)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.replicas = append(f.replicas, replica)
	}
	f.watch()
	return f, nil
}

func (r *run) environment() map[string]string {
	env := map[string]string{
		"RABBITMQ_URL": r.session.servers.brokerURL, "REDIS_URL": r.session.servers.redisURL, "QUEUES": r.queue, "FORWARD_URL": r.service.url,
		"FORWARD_CONCURRENCY": strconv.Itoa(r.load.concurrency), "PREFETCH": strconv.Itoa(r.load.prefetch),
		"DEDUP_PREFIX": r.session.prefix, "LOG_LEVEL": "warn",
	}
	if r.load.gogc > 0 {
		env["GOGC"] = strconv.Itoa(r.load.gogc)
	}
	return env
}

// watch closes ended at the first end; its goroutine ends when all processes have.
func (f *fleet) watch() {
	first := make(chan struct{}, len(f.replicas))
	for _, replica := range f.replicas {
		go func() {
			<-replica.Exited()
			first <- struct{}{}
		}()
	}
	go func() {
		<-first
		close(f.ended)
	}()
}

func (f *fleet) endedEarly() error { return fmt.Errorf("the program has ended\n%s", f.tail()) }

// tail is the end of what the processes have logged.
func (f *fleet) tail() string {
	text := ""
	for _, replica := range f.replicas {
		text += replica.Logs.Tail(tailLines)
	}
	return text
}

// cpu is what all processes have used.
func (f *fleet) cpu() (time.Duration, error) {
	total := time.Duration(0)
	for _, replica := range f.replicas {
		used, err := cpuTime(replica.PID())
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// memory is that of the largest process.
func (f *fleet) memory(which string) (float64, error) {
	largest := 0.0
	for _, replica := range f.replicas {
		size, err := memory(replica.PID(), which)
		if err != nil {
			return 0, err
		}
		largest = max(largest, size)
	}
	return largest, nil
}

// quiet returns the CPU time once it stands still: the last messages are settled then. A yardstick cannot be asked.
func (f *fleet) quiet(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quietPatience, errors.New("the program does not fall quiet"))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	last, since := time.Duration(-1), time.Now()
	for {
		used, err := f.cpu()
		if err != nil {
			return 0, err
		}
		if used != last {
			last, since = used, time.Now()
		}
		if time.Since(since) >= quietFor {
			return used, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// stop ends the processes. rabbitonce has to end in good order; yardsticks are killed by the signal.
func (f *fleet) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopPatience, errors.New("still running"))
	defer cancel()
	for _, replica := range f.replicas {
		if err := replica.Term(); err != nil {
			return fmt.Errorf("stop %s: %w\n%s", f.program, err, f.tail())
		}
	}
	for _, replica := range f.replicas {
		code, err := replica.Wait(ctx)
		if err == nil && f.program == programRabbitonce && code != 0 {
			err = fmt.Errorf("exit code %d\n%s", code, f.tail())
		}
		if err != nil {
			return fmt.Errorf("stop %s: %w", f.program, err)
		}
	}
	return nil
}

// close kills what still runs.
func (f *fleet) close() error {
	var err error
	for _, replica := range f.replicas {
		err = errors.Join(err, replica.Close())
	}
	return err
}
