package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

// chaos does harm until ctx ends, and returns when all of it is taken back. The order of the faults, whom they hit and how
// long they take depend on the seed alone; what the processes make of it does not.
func (s *stage) chaos(ctx context.Context, seed uint64, lanes []lane) ([]check.Fault, error) {
	var mu sync.Mutex
	var all []check.Fault
	var errs []error
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() {
			done, err := s.follow(ctx, l, chance(fmt.Sprint(seed), l.name))
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, done...), append(errs, err)
		})
	}
	running.Wait()
	return append(all, s.cutService()...), errors.Join(errs...)
}

// cutService ends the connections that were left half open: a service that waits for its caller to go would wait for ever.
func (s *stage) cutService() []check.Fault {
	var all []check.Fault
	for _, r := range s.replicas {
		process, now := r.process(), time.Now()
		r.service.Cut()
		all = append(all, check.Fault{Kind: "service network cut", Part: check.PartService, Process: process, Span: check.Span{From: now, To: time.Now()}})
	}
	return all
}

// follow runs the faults of one lane.
func (s *stage) follow(ctx context.Context, l lane, draw *rand.Rand) (done []check.Fault, err error) {
	for {
		for _, i := range draw.Perm(len(l.kinds)) { // each kind as often as the others
			k := l.kinds[i]
			var r *replica
			if l.each {
				r = s.victim(k, draw)
			}
			pause, own := between(draw, 0, l.pause), rand.New(rand.NewPCG(draw.Uint64(), 0))
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return done, nil
			}
			hits, err := s.inflict(k, r, own)
			done = append(done, hits...)
			if err != nil {
				return done, fmt.Errorf("fault %q: %w", k.name, err)
			}
		}
	}
}

// victim draws a replica. The process of the last one lives as long as the run, to show what a long life does to it.
func (s *stage) victim(k kind, draw *rand.Rand) *replica {
	n := len(s.replicas)
	switch {
	case k.first:
		n = 1
	case k.fatal:
		n--
	}
	return s.replicas[draw.IntN(n)]
}

// inflict returns the fault once for each process that it hit.
func (s *stage) inflict(k kind, r *replica, draw *rand.Rand) ([]check.Fault, error) {
	hit := check.Fault{Kind: k.name, Part: k.part}
	if r != nil {
		hit.Process = r.process()
	}
	hit.InFlight = s.service.working(hit.Process)
	hit.Span.From = time.Now()
	err := k.hit(s, r, draw)
	hit.Span.To = time.Now()
	if err != nil && r != nil {
		err = errors.Join(err, alarm(r.process(), r.current()))
	}
	all := []check.Fault{hit}
	if r == nil || k.part == check.PartProcess {
		return all, err
	}
	for _, name := range r.during(hit.Span) { // the next process has the same network
		if name != hit.Process {
			all = append(all, check.Fault{Kind: hit.Kind, Part: hit.Part, Process: name, Span: hit.Span})
		}
	}
	return all, err
}
