package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rabbitonce/dedup"
)

// letterShelf is the dead-letter queue. A letter that was taken stays unacknowledged until it is acknowledged or all are
// given back. It is used by one goroutine.
type letterShelf interface {
	take() (d *delivery, ok bool, err error) // ok is false when none is ready
	ack(tag uint64) error
}

// letterPress publishes a letter and returns when the broker has confirmed it. It is safe for concurrent use.
type letterPress interface {
	publish(ctx context.Context, to destination, m letter) error
}

// What is not put back is held unacknowledged until the end, so that it is not taken again and goes back to its place. There is a bound,
// on how much, and on how long (half of the broker's usual acknowledgement timeout, with room): beyond it letters move
// to the end of their queue instead.
const (
	mostHeld      = 5000
	mostHeldBytes = 64 << 20
	longestHeld   = 10 * time.Minute
)

// redriveWidth is how many publishes are under way at once when there is no rate.
const redriveWidth = 4

var errInterrupted = errors.New("interrupted: nothing is lost, run it again for the rest")

// redrive puts letters back to work: each is published to its queue, confirmed, and only then acknowledged. run is its
// only goroutine but for the publishes under way, for which it waits.
type redrive struct {
	selection
	deadQueue string
	identify  func(dedup.Envelope) string
	retention time.Duration // of records
	total     int           // how many letters were there at the start: no more of them are looked at, so that it ends
	limit     int           // how many go back; 0 is all
	rate      float64       // how many go back a second; 0 is as fast as they are confirmed, and not in order
	dry       bool          // nothing goes back
	shelf     letterShelf
	press     letterPress
	list      func(deadLetter)    // told of each letter that would go back; nil unless dry
	progress  func(redriveReport) // told about once a second

	report   redriveReport
	began    time.Time
	started  int              // publishes to the source queue, confirmed or under way
	underWay int              // publishes under way
	unacked  int              // letters taken and not acknowledged
	results  chan publication // has room for all of them
	workers  sync.WaitGroup
	next     time.Time // when the rate allows the next one
	tick     <-chan time.Time

	held      []deadLetter
	heldBytes int
	heldSince time.Time // when the first one was
	rotating  bool      // nothing is held any more: what is not put back moves
}

// publication is a publish that has ended.
type publication struct {
	letter deadLetter
	move   bool // to the end of the dead-letter queue
	err    error
}

// run looks at every letter that was there at the start. The end of ctx ends it after the publishes under way, the end
// of hard ends those too. Whatever it returns, every letter is in one of the two queues, at worst in both.
func (r *redrive) run(ctx, hard context.Context) error {
	r.began = time.Now()
	r.results = make(chan publication, redriveWidth)
	defer r.workers.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	r.tick = tick.C
	err := r.work(ctx, hard)
	for r.underWay > 0 {
		err = errors.Join(err, r.await(context.WithoutCancel(ctx), nil))
	}
	return err
}

func (r *redrive) work(ctx, hard context.Context) error {
	for r.report.LookedAt < r.total && (r.limit == 0 || r.started < r.limit) {
		if err := r.waitForRoom(ctx); err != nil {
			return err
		}
		if err := r.releaseOld(ctx, hard); err != nil {
			return err
		}
		d, ok, err := r.shelf.take()
		if err != nil || !ok {
			return err
		}
		r.unacked++
		if err := r.handle(ctx, hard, readLetter(d, r.identify)); err != nil {
			return err
		}
	}
	return nil
}

// handle does with a letter what is to be done with it. One that died since the start stays: with a priority it comes
// before the others, again and again. It counts as one of them only when it cannot be held, so that there is an end.
func (r *redrive) handle(ctx, hard context.Context, l deadLetter) error {
	since := l.deadAt.After(r.began)
	if since {
		r.report.DiedSince++
	}
	if since && r.canHold(l) {
		r.hold(l)
		return nil
	}
	r.report.LookedAt++
	r.report.Letters = max(r.report.Letters, r.report.LookedAt)
	if since {
		return r.move(ctx, hard, l)
	}
	switch r.judge(l) {
	case selectedOther:
		r.report.OtherQueues++
		return r.leave(ctx, hard, l)
	case selectedStays:
		r.report.NotSelected++
		return r.leave(ctx, hard, l)
	}
	if r.dry {
		r.report.count(l, r.retention)
		r.list(l)
		r.started++
		return r.leave(ctx, hard, l)
	}
	if err := r.pace(ctx); err != nil {
		return err
	}
	r.started++
	r.publish(hard, l, false)
	return nil
}

// pace waits until the rate allows one more.
func (r *redrive) pace(ctx context.Context) error {
	if r.rate == 0 {
		return nil
	}
	timer := time.NewTimer(time.Until(r.next))
	defer timer.Stop()
	for due := false; !due; due = time.Now().Compare(r.next) >= 0 {
		if err := r.await(ctx, timer.C); err != nil {
			return err
		}
	}
	r.next = time.Now().Add(time.Duration(float64(time.Second) / r.rate))
	return nil
}

// leave holds a letter that does not go back, or moves it to the end of its queue.
func (r *redrive) leave(ctx, hard context.Context, l deadLetter) error {
	if !r.canHold(l) {
		return r.move(ctx, hard, l)
	}
	r.hold(l)
	return nil
}

// canHold is false when too much is held, and when the broker has seen a letter come back so often that one more time
// could drop it.
func (r *redrive) canHold(l deadLetter) bool {
	full := len(r.held) >= mostHeld || r.heldBytes+len(l.Body) > mostHeldBytes
	return !r.rotating && !full && brokerReturns(l.delivery) < returnsLimit
}

func (r *redrive) hold(l deadLetter) {
	if len(r.held) == 0 {
		r.heldSince = time.Now()
	}
	r.held = append(r.held, l)
	r.heldBytes += len(l.Body)
}

// releaseOld moves what has been held for long, before the broker takes it for forgotten and closes the channel. From
// then on letters move at once, which keeps them in order.
func (r *redrive) releaseOld(ctx, hard context.Context) error {
	if len(r.held) == 0 || time.Since(r.heldSince) < longestHeld {
		return nil
	}
	r.rotating = true
	old := r.held
	r.held, r.heldBytes = nil, 0
	for _, l := range old {
		if err := r.move(ctx, hard, l); err != nil {
			return err
		}
	}
	return nil
}

func (r *redrive) move(ctx, hard context.Context, l deadLetter) error {
	if err := r.waitForRoom(ctx); err != nil {
		return err
	}
	r.publish(hard, l, true)
	return nil
}

// waitForRoom returns when one more publish may be under way: with a rate there is one at a time, in order.
func (r *redrive) waitForRoom(ctx context.Context) error {
	width := 1
	if r.rate == 0 && !r.dry {
		width = redriveWidth
	}
	for r.underWay >= width {
		if err := r.await(ctx, nil); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// publish begins to publish a letter; its result comes to await.
func (r *redrive) publish(hard context.Context, l deadLetter, move bool) {
	to, sent := destination{queue: r.queue}, l.redriven
	if move {
		to, sent = destination{queue: r.deadQueue}, l.moved
	}
	r.underWay++
	r.workers.Go(func() {
		r.results <- publication{letter: l, move: move, err: r.press.publish(hard, to, sent())}
	})
}

// await waits for one thing: a publish that ends, the next progress, until, or the end of ctx.
func (r *redrive) await(ctx context.Context, until <-chan time.Time) error {
	select {
	case p := <-r.results:
		return r.conclude(p)
	case <-r.tick:
		r.progress(r.report)
	case <-until:
	case <-ctx.Done():
		return errInterrupted
	}
	return nil
}

// conclude acknowledges a letter whose copy is confirmed. One whose copy is not stays where it is.
func (r *redrive) conclude(p publication) error {
	r.underWay--
	if p.err != nil {
		return fmt.Errorf("letter %s stays where it is: %w", lineID(p.letter.id), p.err)
	}
	if err := r.shelf.ack(p.letter.DeliveryTag); err != nil {
		return fmt.Errorf("acknowledge letter %s, which is in both queues now: %w", lineID(p.letter.id), err)
	}
	r.unacked--
	if p.move {
		r.report.MovedToEnd++
	} else {
		r.report.count(p.letter, r.retention)
	}
	return nil
}
