package proxy

import (
	"context"
	"sync"
	"testing"
	"time"
)

// fakeBroker makes links whose queues answer as a test says. Its methods are for the test's goroutine and the
// publisher's.
type fakeBroker struct {
	mu       sync.Mutex
	answers  map[string]func() error // by queue; nil means a confirm at once
	declares chan struct{}           // a declaration waits for its end; nil does not
	declared []string
	old      []string // queues that a new link has known for long
	links    []*fakeLink
	outlets  int // opened
	closed   int // outlets closed
	most     map[string]int
	now      map[string]int
}

// fakeLink is one connection to it.
type fakeLink struct {
	notices chan blocking
	dead    chan struct{}
	once    sync.Once
}

func (l *fakeLink) end() { l.once.Do(func() { close(l.dead); close(l.notices) }) }

func newFakeBroker() *fakeBroker {
	return &fakeBroker{answers: map[string]func() error{}, most: map[string]int{}, now: map[string]int{}}
}

func (b *fakeBroker) publisher(t *testing.T) *publisher {
	p := newPublisher(&broker{})
	p.dial = b.dial
	t.Cleanup(p.closeNow)
	return p
}

func (b *fakeBroker) dial(context.Context) (*link, error) {
	f := &fakeLink{notices: make(chan blocking, 1), dead: make(chan struct{})}
	l := newLink(f.notices)
	for _, queue := range b.old {
		l.sightings[queue] = &sighting{turn: make(chan struct{}, 1), since: time.Now().Add(-settlingTime)}
	}
	l.open = func() (outlet, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.outlets++
		return &fakeLane{broker: b, link: f}, nil
	}
	l.declare = func(to destination) error {
		if b.declares != nil {
			<-b.declares
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.declared = append(b.declared, to.queue)
		return nil
	}
	l.isClosed = func() bool {
		select {
		case <-f.dead:
			return true
		default:
			return false
		}
	}
	l.hangUp = f.end
	b.mu.Lock()
	defer b.mu.Unlock()
	b.links = append(b.links, f)
	return l, nil
}

func (b *fakeBroker) answer(queue string, with func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[queue] = with
}

// latest is the connection dialled last.
func (b *fakeBroker) latest() *fakeLink {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.links[len(b.links)-1]
}

func (b *fakeBroker) enter(queue string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now[queue] += n
	b.most[queue] = max(b.most[queue], b.now[queue])
}

type fakeLane struct {
	broker *fakeBroker
	link   *fakeLink
	owed   bool
	shut   bool
}

func (l *fakeLane) send(queue string, _ letter, giveUp <-chan struct{}) error {
	l.broker.enter(queue, 1)
	defer l.broker.enter(queue, -1)
	l.broker.mu.Lock()
	with := l.broker.answers[queue]
	l.broker.mu.Unlock()
	answer := make(chan error, 1)
	if with == nil {
		answer <- nil
	} else {
		go func() { answer <- with() }()
	}
	select {
	case err := <-answer:
		return err
	case <-giveUp:
		l.owed = true
		return errNoConfirm
	case <-l.link.dead:
		return errLinkLost
	}
}

func (l *fakeLane) reusable() bool { return !l.owed && !l.shut }

func (l *fakeLane) close() {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	l.broker.closed++
	l.shut = true
}

// silence is an answer that never comes, until the test ends.
func silence(t *testing.T) func() error {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return func() error { <-ended; return errLinkLost }
}

func (l *fakeLink) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}
