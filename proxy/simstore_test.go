package proxy

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"rabbitonce/dedup"
	judge "rabbitonce/proxy/internal/faults/check"
)

var (
	errStoreGone = errors.New("simulated: the store does not answer")
	errKilled    = errors.New("simulated: this process was killed")
)

// storeState is what is wrong with the store, under the world's lock.
type storeState struct {
	away   map[string]int // faults, by replica, "" for all
	silent bool           // it does not refuse, it does not answer
	slow   time.Duration  // each way takes so much longer
	lose   int            // so many answers are lost
}

// wayOf leads a replica to the store: there and back take time, and faults hit either way.
func (w *world) wayOf(r *replica) dedup.Way {
	random := rand.New(rand.NewPCG(w.schedule.seed, uint64(r.number)+1))
	travel := func(ctx context.Context) error {
		w.mu.Lock()
		d := simLatency(random)() + w.store.slow
		w.mu.Unlock()
		if err := sleep(ctx, d); err != nil {
			return err
		}
		return w.net.Thaw(ctx, r.name)
	}
	return func(ctx context.Context, trip func()) error {
		if err := travel(ctx); err != nil {
			return err
		}
		if err := w.reach(ctx, r); err != nil {
			return err
		}
		trip()
		w.happened(instantStored)
		if err := travel(ctx); err != nil {
			return err
		}
		return w.heardOf(ctx, r)
	}
}

// reach is whether an operation comes through to the store. One that was on its way when its process was killed may.
func (w *world) reach(ctx context.Context, r *replica) error {
	w.mu.Lock()
	dead := r.dead
	away := w.store.away[""]+w.store.away[r.name] > 0
	silent := w.store.silent
	w.mu.Unlock()
	switch {
	case dead:
		return errKilled
	case away && silent:
		<-ctx.Done()
		return context.Cause(ctx)
	case away:
		return errStoreGone
	}
	return nil
}

// heardOf is whether the answer comes through.
func (w *world) heardOf(ctx context.Context, r *replica) error {
	w.mu.Lock()
	dead := r.dead
	away := w.store.away[""]+w.store.away[r.name] > 0
	lost := w.store.lose > 0
	if lost {
		w.store.lose--
	}
	silent := w.store.silent
	w.mu.Unlock()
	switch {
	case dead:
		return errKilled
	case (away || lost) && silent:
		<-ctx.Done()
		return context.Cause(ctx)
	case away || lost:
		return errStoreGone
	}
	return nil
}

// written notes each change of a record, in the store's order.
func (w *world) written(change dedup.Written) {
	_, id, found := strings.Cut(change.Key, "orders:")
	if !found {
		return // a question whether the store is there
	}
	write := judge.Write{ID: judge.ID{Queue: simQueue, Value: id}, State: judge.Absent}
	if rec := change.Record; rec != nil {
		states := map[dedup.State]judge.State{
			dedup.StateProcessing: judge.Processing, dedup.StateWaiting: judge.Waiting, dedup.StateDone: judge.Done, dedup.StateDead: judge.Dead,
		}
		write.State, write.Attempts, write.Unknown, write.At = states[rec.State], rec.Attempts, rec.EverUnknown, change.At
		if rec.State == dedup.StateProcessing {
			write.Token = string(change.Token[:])
		}
	}
	w.logf("store writes %s: %s, attempt %d, unknown %t", id, write.State, write.Attempts, write.Unknown)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Writes = append(w.history.Writes, write)
}
