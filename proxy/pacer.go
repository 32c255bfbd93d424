package proxy

import (
	"context"
	"sync"
	"time"
)

// pacer spaces what begins: FORWARD_RATE. Safe for concurrent use; the zero value waits for nothing.
type pacer struct {
	interval time.Duration // between two; 0 is no limit

	mu   sync.Mutex
	next time.Time // when the next one may begin
}

func newPacer(perSecond float64) *pacer {
	if perSecond == 0 {
		return &pacer{}
	}
	return &pacer{interval: time.Duration(float64(time.Second) / perSecond)}
}

// wait returns when it is the caller's turn, or with the cause of ctx's end; then its turn is lost.
func (p *pacer) wait(ctx context.Context) error {
	if p.interval == 0 {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	turn := now
	if p.next.After(now) {
		turn = p.next
	}
	p.next = turn.Add(p.interval)
	p.mu.Unlock()
	if turn.Equal(now) {
		return nil
	}
	return sleep(ctx, turn.Sub(now))
}
