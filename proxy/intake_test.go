package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Deliveries are handled in order, so many at a time, and each once; what waits in line is counted.
func TestIntake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handlers sync.WaitGroup
		var held, entering, most atomic.Int64
		var mu sync.Mutex
		var begun []uint64
		next := make(chan struct{})
		var i *intake
		i = newIntake(func(a arrival) {
			most.Store(max(most.Load(), entering.Add(1)))
			mu.Lock()
			begun = append(begun, a.delivery.DeliveryTag)
			mu.Unlock()
			<-next
			entering.Add(-1)
			i.entered()
			time.Sleep(time.Second) // at work
		}, handlers.Go, func(n int64) { held.Add(n) })
		const all = 1000
		for tag := range uint64(all) {
			i.add(arrival{delivery: &delivery{DeliveryTag: tag}})
		}
		synctest.Wait()
		if held.Load() != all-enteringFew || entering.Load() != enteringFew {
			t.Errorf("%d in line, %d entering", held.Load(), entering.Load())
		}
		for range all {
			next <- struct{}{}
		}
		handlers.Wait()
		if held.Load() != 0 || most.Load() > enteringMost {
			t.Errorf("%d still in line, at most %d entering", held.Load(), most.Load())
		}
		slices.Sort(begun)
		if len(begun) != all || len(slices.Compact(begun)) != all {
			t.Errorf("%d begun", len(begun))
		}
	})
}

// The line takes up no more memory than what waits in it at a time.
func TestIntakeLineStaysShort(t *testing.T) {
	enter := make(chan struct{})
	var handlers sync.WaitGroup
	var i *intake
	i = newIntake(func(arrival) { <-enter; i.entered() }, handlers.Go, func(int64) {})
	for range enteringFew + 100 {
		i.add(arrival{delivery: &delivery{}})
	}
	for range 100_000 {
		i.add(arrival{delivery: &delivery{}})
		enter <- struct{}{}
	}
	i.mu.Lock()
	size := cap(i.line)
	i.mu.Unlock()
	close(enter)
	handlers.Wait()
	if size > 2000 {
		t.Errorf("a line of about 100 has room for %d", size)
	}
}

// What waits in line when its session ends goes back, however many wait and whatever they wait for.
func TestIntakeGivesBack(t *testing.T) {
	b := newBench(t, &journal{}, "FORWARD_CONCURRENCY=1", "PREFETCH=1000")
	if err := b.queue.throttle.take(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	const all = 90 // the bench's session takes 100
	for tag := range uint64(all) {
		b.deliver(tag+1, fmt.Sprint(tag), "200")
	}
	waitUntil(t, func() bool { return b.queue.waiting.Load() == all })
	b.drain(errDraining)
	for tag, how := range b.settled(t, all) {
		if how == "ack" {
			t.Errorf("%d: settled by %q", tag, how)
		}
	}
	waitUntil(t, func() bool { return b.queue.waiting.Load() == 0 })
}

// While the brake is on, a delivery that has waited in line for long is let go at once: no slot may come in time for all.
func TestIntakeLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(4, 1)
		defer th.stop()
		th.failed(setback{status: 404})
		since := time.Now()
		time.Sleep(heldMost + time.Second)
		if err := th.take(context.Background(), since); !errors.Is(err, errHeldTooLong) {
			t.Errorf("error %v", err)
		}
		th.succeeded()
		if err := th.take(context.Background(), since); err != nil {
			t.Errorf("without the brake: %v", err)
		}
	})
}
