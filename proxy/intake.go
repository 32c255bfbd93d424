package proxy

import (
	"context"
	"sync"
	"time"
)

const (
	// enteringMost is how many handlers wait for a worker slot before further deliveries wait in line: enough that a free slot
	// never waits for a handler.
	enteringMost = 64
	// enteringFew is how many there are at least while deliveries wait in line. A goroutine is started for that; up to
	// enteringMost, those that have ended a handler go on.
	enteringFew = 8
)

// intake starts the handlers of a queue's deliveries, in the order in which these came. Most of a prefetch waits for a worker
// slot, which a delivery in line can do without a goroutine, whose stack would have to be grown first and looked through by
// every garbage collection. Only those count that wait for their first slot: a handler that waits for anything else holds up
// no other. Safe for concurrent use.
type intake struct {
	handle func(arrival)
	start  func(func()) // in a goroutine
	held   func(int64)  // told how many more deliveries wait in line, or fewer

	mu       sync.Mutex
	line     []arrival // those that wait, the first at next
	next     int
	entering int
}

// arrival is a delivery that a session has taken in.
type arrival struct {
	work, hold context.Context //nolint:containedctx // a delivery's life begins in another goroutine
	session    *session
	delivery   *delivery
	at         time.Time
	seen       time.Time // when the message first came, see unpark
	place      *place
}

func newIntake(handle func(arrival), start func(func()), held func(int64)) *intake {
	return &intake{handle: handle, start: start, held: held}
}

// add has the delivery handled, at once or when those before it have entered.
func (i *intake) add(a arrival) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next > len(i.line)/2 {
		rest := copy(i.line, i.line[i.next:])
		clear(i.line[rest:])
		i.line, i.next = i.line[:rest], 0
	}
	i.line = append(i.line, a)
	i.held(1)
	i.startLocked()
}

// entered tells that a handler waits for its first slot no longer.
func (i *intake) entered() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.entering--
	i.startLocked()
}

// startLocked sees to it that nobody is left in line whom nobody would fetch: what a handler waits for ends with its session.
func (i *intake) startLocked() {
	for i.entering < enteringFew && i.next < len(i.line) {
		first := i.takeLocked()
		i.start(func() {
			for more := true; more; first, more = i.take() {
				i.handle(first)
			}
		})
	}
}

// take returns the next delivery for a goroutine that has ended a handler.
func (i *intake) take() (first arrival, some bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.entering >= enteringMost || i.next == len(i.line) {
		return arrival{}, false
	}
	return i.takeLocked(), true
}

func (i *intake) takeLocked() arrival {
	first := i.line[i.next]
	i.line[i.next] = arrival{} // so that nothing keeps the message
	i.next++
	if i.next == len(i.line) {
		i.line, i.next = i.line[:0], 0
	}
	i.entering++
	i.held(-1)
	return first
}
