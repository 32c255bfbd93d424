package main

import (
	"context"
	"fmt"
)

// idle measures what a program costs that has nothing to do.
func (r *run) idle(ctx context.Context) error {
	f, err := r.launch()
	if err != nil {
		return err
	}
	defer f.close()
	if err := r.awaitConsuming(ctx, f); err != nil {
		return err
	}
	before, err := f.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, f, r.load.idle); err != nil {
		return err
	}
	after, err := f.cpu()
	if err != nil {
		return err
	}
	r.figures[idleCPU] = 100 * (after - before).Seconds() / r.load.idle.Seconds()
	if r.figures[peak], err = f.memory(peakMemory); err != nil {
		return fmt.Errorf("look at idle program: %w", err)
	}
	return f.stop(ctx)
}
