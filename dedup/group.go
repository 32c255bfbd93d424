package dedup

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

const (
	// groupSize bounds how long one group keeps the store from other clients.
	groupSize = 128
	// groupTimeout bounds a group's whole trip: waiting for a connection,
	// dialing, writing and reading.
	groupTimeout = 3 * time.Second
	// slowAfter is how long a group may be in flight before the operations
	// that gathered behind it stop waiting for it.
	slowAfter = 25 * time.Millisecond
	// maxInFlight bounds the groups, and so the connections, at one time.
	maxInFlight = 3
	// linger is how long a goroutine waits for its next group.
	linger = time.Second
)

// ErrClosed is what every operation returns after Close.
var ErrClosed = errors.New("the claim store is closed")

// committer lets concurrent operations share round trips (group commit). An
// operation that finds the line idle goes at once and alone. Those that come
// while a group is in flight gather, and leave together when it returns, or
// when it has been out for slowAfter: one slow group holds up nobody for long,
// and a failed one fails only its own members.
//
// A group leaves after everybody who is ready to run has had a turn: when the
// processor is busy, others are about to join, and the fewer the groups the less
// each operation costs; when it is idle, that is at once.
//
// Each group has a goroutine, which goes on with what has gathered meanwhile and
// then waits a while for more: a new goroutine for each lone operation would
// spend more on growing its stack than on the operation.
type committer struct {
	backend backend

	mu       sync.Mutex
	pending  []*call
	spare    []*call // empty, to gather in next
	inFlight int
	slow     *time.Timer   // set while calls are pending
	idle     int           // goroutines that wait for a group
	next     chan struct{} // tells one of them; holds one for each
	closed   chan struct{} // ends their waiting

	groups sync.WaitGroup // the goroutines
}

func newCommitter(b backend) *committer {
	return &committer{backend: b, next: make(chan struct{}, maxInFlight), closed: make(chan struct{})}
}

// submit queues a call and returns. The call ends later, on a committer
// goroutine, unless submit returns an error.
func (c *committer) submit(one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return ErrClosed
	default:
	}
	c.pending = append(c.pending, one)
	if c.inFlight == 0 {
		c.launchLocked()
	} else if c.slow == nil {
		c.slow = time.AfterFunc(slowAfter, c.overtake)
	}
	return nil
}

// cancel takes back a call that has not left yet, and reports whether it
// could. After that the call does not end.
func (c *committer) cancel(one *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.pending {
		if p == one {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return true
		}
	}
	return false
}

// overtake sends what gathered behind a slow group.
func (c *committer) overtake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = nil
	if len(c.pending) == 0 {
		return
	}
	if c.inFlight < maxInFlight {
		c.launchLocked()
	}
	if len(c.pending) > 0 {
		c.slow = time.AfterFunc(slowAfter, c.overtake)
	}
}

func (c *committer) launchLocked() {
	c.inFlight++
	if c.idle > 0 {
		c.idle--
		c.next <- struct{}{}
		return
	}
	c.groups.Go(c.work)
}

// takeLocked returns the calls that leave next.
func (c *committer) takeLocked() []*call {
	group := c.pending
	if len(group) <= groupSize {
		c.pending, c.spare = c.spare, nil
		if c.slow != nil {
			c.slow.Stop()
			c.slow = nil
		}
		return group
	}
	c.pending = append([]*call(nil), group[groupSize:]...)
	return group[:groupSize:groupSize]
}

// work runs one group after another, and ends when none has come for a while.
func (c *committer) work() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for {
		for group := c.proceed(nil); len(group) > 0; group = c.proceed(group) {
			c.runGroup(group)
		}
		timer.Reset(linger)
		select {
		case <-c.next:
			continue
		case <-timer.C:
		case <-c.closed:
		}
		if !c.retire() {
			<-c.next // it was told to go on
			continue
		}
		return
	}
}

// proceed returns what has gathered, or takes the goroutine for idle. ended is
// the group before.
func (c *committer) proceed(ended []*call) []*call {
	runtime.Gosched()
	clear(ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = ended[:0]
	group := c.takeLocked()
	if len(group) == 0 {
		c.inFlight--
		c.idle++
	}
	return group
}

// retire takes an idle goroutine out, unless it was told to go on.
func (c *committer) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == 0 {
		return false
	}
	c.idle--
	return true
}

func (c *committer) runGroup(group []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	c.backend.run(ctx, group)
	for _, one := range group {
		one.end()
	}
}

// close refuses new calls and waits for those in flight, groupTimeout at
// most for each group.
func (c *committer) close() {
	c.mu.Lock()
	close(c.closed)
	c.mu.Unlock()
	c.groups.Wait()
}
