package proxy

import (
	"context"
	"time"
)

// pacer spaces the requests that begin: FORWARD_RATE. One at a time has the turn, and a turn in which no request begins
// costs nothing. Safe for concurrent use; the zero value waits for nothing.
type pacer struct {
	interval time.Duration // between two; 0 is no limit
	turn     chan struct{} // holds one token: who put it in has the turn
	next     time.Time     // when the next one may begin; owned by who has the turn
}

// pacerSlack is what may be made up for, of the time that a busy machine or a slow store held a turn up.
const pacerSlack = 200 * time.Millisecond

func newPacer(perSecond float64) *pacer {
	if perSecond == 0 {
		return &pacer{}
	}
	return &pacer{interval: time.Duration(float64(time.Second) / perSecond), turn: make(chan struct{}, 1)}
}

// wait returns when the caller may begin a request, or with the cause of ctx's end. Without an error the caller has the
// turn, and calls begun or pass.
func (p *pacer) wait(ctx context.Context) error {
	if p.interval == 0 {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if left := time.Until(p.next); left > 0 {
		if err := sleep(ctx, left); err != nil {
			p.pass()
			return err
		}
	}
	return nil
}

// begun ends the turn with a request.
func (p *pacer) begun() {
	if p.interval == 0 {
		return
	}
	now := time.Now()
	if now.Sub(p.next) > max(p.interval, pacerSlack) { // what was not used is not saved up
		p.next = now
	}
	p.next = p.next.Add(p.interval)
	<-p.turn
}

// pass ends the turn without one.
func (p *pacer) pass() {
	if p.interval != 0 {
		<-p.turn
	}
}
