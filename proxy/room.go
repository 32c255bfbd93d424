package proxy

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// room is where the deliveries of one queue rest that wait for their next attempt, or for somebody else who has the
// message. They take up places of the prefetch: when more than half of it rests, the oldest of those that may wait
// elsewhere are told to leave, so that others still flow. Safe for concurrent use.
type room struct {
	prefetch int

	mu      sync.Mutex
	resting int      // those told to leave not counted
	movable []*guest // those that may be told to leave, the oldest first
}

// guest is a delivery that rests.
type guest struct {
	arrived time.Time
	leave   chan struct{} // closed when it has to leave
	counted bool          // in room.resting
}

func newRoom(prefetch int) *room { return &room{prefetch: prefetch} }

// enter takes a delivery in that arrived then.
func (r *room) enter(arrived time.Time, movable bool) *guest {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := &guest{arrived: arrived, leave: make(chan struct{}), counted: true}
	r.resting++
	if movable {
		at := sort.Search(len(r.movable), func(i int) bool { return r.movable[i].arrived.After(arrived) })
		r.movable = slices.Insert(r.movable, at, g)
	}
	r.makeRoomLocked()
	return g
}

// stay takes a delivery back that was told to leave and could not: it is not told again.
func (r *room) stay(g *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.counted = true
	r.resting++
	r.makeRoomLocked()
}

// exit ends a rest.
func (r *room) exit(g *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.counted {
		r.resting--
	}
	if i := slices.Index(r.movable, g); i >= 0 {
		r.movable = slices.Delete(r.movable, i, i+1)
	}
}

func (r *room) makeRoomLocked() {
	for 2*r.resting > r.prefetch && len(r.movable) > 0 {
		g := r.movable[0]
		r.movable = slices.Delete(r.movable, 0, 1)
		g.counted = false
		r.resting--
		close(g.leave)
	}
}
