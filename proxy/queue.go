package proxy

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

var (
	errDraining = errors.New("shutting down")
	errPaused   = trouble(endPaused, errors.New("paused: the service does not answer"))
)

// queue moves the deliveries of one queue. run is its supervisor; everything else is called by run and by the
// handlers that run's sessions start.
type queue struct {
	cfg       QueueConfig
	rules     rules
	log       *slog.Logger
	broker    *broker
	publisher *publisher
	store     *dedup.Store
	service   *forward.Client
	metrics   *queueMetrics

	serviceGate *gate
	storeGate   *gate
	sessionPart *part // the consumer
	letters     *part // publishing of dead letters
	parking     *parking

	storeDown dedup.StoreDownPolicy
	waitSteps []time.Duration
	late      chan struct{} // one token a success that waits to be recorded without a claim

	intake    *intake
	copies    *copies
	patience  patience // with the store, for results
	room      *room
	lanes     *lanes    // nil when no order is kept
	throttle  *throttle // worker slots: POSTs at once
	pacer     *pacer
	conflicts atomic.Int64           // answers 409 in a row
	hint      atomic.Pointer[string] // what they suggest
	handlers  sync.WaitGroup
	waiting   atomic.Int64 // deliveries held without a slot
	inFlight  atomic.Int64 // POSTs under way
}

// streamPause is how long a queue that was found to be a stream is left alone.
const streamPause = 30 * time.Second

// run opens one session after another until hold ends, and returns when every handler has returned. work ends the
// POSTs that are under way.
func (q *queue) run(work, hold context.Context) {
	defer q.handlers.Wait()
	defer q.throttle.stop()
	pauses := backoff{first: 200 * time.Millisecond, last: 5 * time.Second}
	var head undecodable
	for {
		if q.serviceGate.wait(hold) != nil || q.waitForStore(hold) != nil {
			return
		}
		handled := false
		c, err := q.broker.consume(hold, q.cfg.Name, head.prefetch(q.cfg.Prefetch))
		if err == nil {
			q.sessionPart.up()
			began := time.Now()
			handled, err = q.serve(work, hold, c)
			if time.Since(began) > pauses.last {
				pauses.reset()
			}
		}
		if hold.Err() != nil {
			return
		}
		q.metrics.sessionEnds[whyEnded(err)].Inc()
		q.sessionPart.down(err)
		pause, giveUp := head.ended(err, handled)
		switch {
		case giveUp:
			<-hold.Done()
			return
		case errors.Is(err, errPaused):
			pauses.reset()
		case errors.Is(err, errStream):
			pause = streamPause // a person has to replace the queue
		case !errors.Is(err, errUndecodable):
			pause = pauses.pause()
		}
		if sleep(hold, pause) != nil {
			return
		}
	}
}

// serve runs one session to its end.
func (q *queue) serve(work, hold context.Context, c *consumer) (handled bool, err error) {
	s := newSession(c, q.cfg.Prefetch)
	s.ordered = q.lanes != nil
	hold, end := context.WithCancelCause(hold)
	watched := make(chan struct{})
	go func() { defer close(watched); q.pauseWhenServiceIsGone(hold, end) }()
	err = s.run(hold, func(hold context.Context, d *delivery) {
		q.begin(work, hold, s, d)
	})
	if errors.Is(context.Cause(hold), errPaused) {
		err = errPaused
	}
	end(errSessionEnded)
	<-watched
	return s.handled, err
}

// pauseWhenServiceIsGone ends hold once the service has been away for RETRY_HOLD, so that unstarted deliveries go
// back and other replicas can have them.
func (q *queue) pauseWhenServiceIsGone(hold context.Context, end context.CancelCauseFunc) {
	for {
		shut, _ := q.serviceGate.signals()
		select {
		case <-shut:
		case <-hold.Done():
			return
		}
		_, opened := q.serviceGate.signals()
		select {
		case <-opened:
			continue
		case <-hold.Done():
			return
		case <-time.After(q.cfg.Retry.Hold):
		}
		end(errPaused)
		return
	}
}

// needsNoStore tells whether the queue goes on while the store is down.
func (q *queue) needsNoStore() bool {
	return q.storeDown == dedup.StoreDownForward || q.cfg.Dedup.Mode == dedup.ModeObserve
}

func (q *queue) waitForStore(hold context.Context) error {
	if q.needsNoStore() {
		return q.storeGate.waitAsked(hold) // a store that was not asked yet is not down
	}
	return q.storeGate.wait(hold)
}

func (q *queue) held(n int64) {
	if q.waiting.Add(n) == 0 {
		q.parking.idle()
	}
}
