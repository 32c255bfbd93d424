package proxy

import "sync"

// lanes are lines of deliveries by name. In each line one delivery has its turn, the first of those that have not
// left; a line without deliveries takes up no memory. Lines outlive sessions: what is in a POST when its session ends
// keeps its place, and its redelivery stands behind it. Safe for concurrent use.
type lanes struct {
	mu  sync.Mutex
	all map[string]*lane
}

// lane is one line, never empty. Guarded by lanes.mu.
type lane struct {
	name        string
	first, last *place // first has its turn
}

// place is a delivery's place in a line. A nil place is that of a delivery that stands in no line.
type place struct {
	lanes *lanes
	turn  chan struct{} // closed once every place before this one has left

	// guarded by lanes.mu
	lane *lane
	next *place
	left bool
}

func newLanes() *lanes { return &lanes{all: map[string]*lane{}} }

// join takes the last place in a line. The caller leaves it.
func (l *lanes) join(name string) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{lanes: l, turn: make(chan struct{})}
	line, some := l.all[name]
	if some {
		line.last.next, line.last = p, p
	} else {
		line = &lane{name: name, first: p, last: p}
		l.all[name] = line
		close(p.turn)
	}
	p.lane = line
	return p
}

// leave gives the place up, the turn too when it has come; a second time is harmless. One that leaves before its turn
// lets nobody overtake those before it.
func (p *place) leave() {
	if p == nil {
		return
	}
	l := p.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	p.left = true
	line := p.lane
	if line.first != p {
		return
	}
	for line.first != nil && line.first.left {
		line.first = line.first.next
	}
	if line.first == nil {
		delete(l.all, line.name)
		return
	}
	close(line.first.turn)
}
