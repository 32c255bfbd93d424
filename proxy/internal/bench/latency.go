package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	consumePatience = 30 * time.Second
	// warmUp is how long a program is left alone after it has begun to consume.
	warmUp = time.Second
)

// latency publishes at a fixed rate while the program runs, and measures how long each message takes to its POST.
func (r *run) latency(ctx context.Context) error {
	r.ledger.timed()
	f, err := r.launch()
	if err != nil {
		return err
	}
	defer f.close()
	if err := r.awaitConsuming(ctx, f); err != nil {
		return err
	}
	if err := r.publishAtRate(ctx); err != nil {
		return err
	}
	if _, err := r.awaitDone(ctx, f); err != nil {
		return err
	}
	if err := r.finish(ctx, f); err != nil {
		return err
	}
	all := r.ledger.latencies()
	r.figures[medianLatency] = milliseconds(percentile(all, 50))
	r.figures[tailLatency] = milliseconds(percentile(all, 99))
	return nil
}

func (r *run) publishAtRate(ctx context.Context) error {
	ticker := time.NewTicker(time.Second / time.Duration(r.load.rate))
	defer ticker.Stop()
	for n := range r.load.messages {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.publisher.publish(ctx, n); err != nil {
			return err
		}
	}
	return r.publisher.settle(ctx)
}

// awaitConsuming returns when all processes consume, and have had warmUp to do what comes with the start.
func (r *run) awaitConsuming(ctx context.Context, f *fleet) error {
	ctx, cancel := context.WithTimeoutCause(ctx, consumePatience, errors.New("the program does not consume"))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		_, consumers, err := r.depth()
		if err != nil {
			return err
		}
		if consumers >= r.load.replicas {
			return pause(ctx, f, warmUp)
		}
		select {
		case <-ticker.C:
		case <-f.ended:
			return f.endedEarly()
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", context.Cause(ctx), f.tail())
		}
	}
}

// pause lets the program run for a time.
func pause(ctx context.Context, f *fleet, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.ended:
		return f.endedEarly()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
