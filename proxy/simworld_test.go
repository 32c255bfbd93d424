package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/fakebroker"
	judge "rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/simnet"
)

const (
	simQueue          = "orders"
	simBrokerAddress  = "broker:5672"
	simServiceAddress = "service:8080"
)

// world is one simulated run: it lives in one bubble of synctest.
type world struct {
	t         *testing.T
	schedule  *schedule
	loud      bool // the program's own log goes into the story
	config    Config
	began     time.Time
	net       *simnet.Network
	broker    *fakebroker.Broker
	service   *simService
	memory    *dedup.Memory
	store     storeState
	work      sync.WaitGroup // replicas, the publisher, faults
	published chan struct{}  // closed when all messages are

	mu         sync.Mutex
	random     *rand.Rand
	story      []string
	problems   []string
	history    judge.History
	slots      []*replica // the latest of each
	awaited    []*awaited
	faultsOver int
	stopping   bool // nothing is started any more
}

// simResult is what became of a run.
type simResult struct {
	problems []string
	story    []string
	report   judge.Report
	took     time.Duration // of simulated time
}

// simulate runs a schedule. It has to be called in a bubble.
func simulate(t *testing.T, s *schedule, loud bool) simResult {
	w := &world{
		t: t, schedule: s, loud: loud, began: time.Now(), random: rand.New(rand.NewPCG(s.seed, 1)),
		slots: make([]*replica, s.replicas), published: make(chan struct{}), store: storeState{away: map[string]int{}},
	}
	cfg, err := Load(s.environ, "simulated")
	if err != nil {
		t.Fatal(err)
	}
	cfg.reload, cfg.reloadBroker = nil, nil // nothing changes
	w.config = *cfg
	w.net = simnet.New(func(way int) func() time.Duration { return simLatency(rand.New(rand.NewPCG(s.seed, uint64(way)+1000))) })
	w.broker = fakebroker.New(fakebroker.Options{CommitTime: w.commitTime})
	w.service = newSimService(w)
	w.memory = dedup.SharedMemory(w.written)
	kind := "classic"
	if s.quorum {
		kind = "quorum"
	}
	if err := w.broker.Declare(simQueue, amqp.Table{"x-queue-type": kind}); err != nil {
		t.Fatal(err)
	}
	w.net.Serve(simBrokerAddress, w.broker.Serve)
	w.net.Serve(simServiceAddress, w.service.serve)
	for slot := range w.slots {
		w.start(slot, nil)
	}
	w.work.Go(func() { defer close(w.published); w.publish() })
	w.plant()
	w.settle()
	w.end()
	return w.judge()
}

// simLatency is that of a network nearby, with a hiccup now and then.
func simLatency(r *rand.Rand) func() time.Duration {
	return func() time.Duration {
		if r.IntN(60) == 0 {
			return between(r, time.Millisecond, 20*time.Millisecond)
		}
		return between(r, 20*time.Microsecond, 400*time.Microsecond)
	}
}

// commitTime is how long the broker takes to have a message safe.
func (w *world) commitTime() time.Duration {
	w.happened(instantPublished)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.schedule.slowCommit {
		return between(w.random, 0, 10*time.Microsecond)
	}
	return between(w.random, 10*time.Microsecond, pick(w.random, time.Millisecond, 20*time.Millisecond))
}

// chance is true once in n times.
func (w *world) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n) == 0
}

// logf adds a line to the story, which is told in a replay alone.
func (w *world) logf(format string, args ...any) {
	if !w.loud {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%12v ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

func (w *world) failf(format string, args ...any) {
	w.logf("PROBLEM "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// replica is one process.
type replica struct {
	slot   int
	name   string
	number int // of its entry in the history
	stop   context.CancelFunc
	gone   chan struct{} // closed when it has ended by itself
	dead   bool          // nothing of it reaches others; under the world's lock
}

func (w *world) isDead(r *replica) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.dead
}

// start runs a replica in a slot, after the one before has ended, unless another was started there.
func (w *world) start(slot int, before *replica) {
	w.mu.Lock()
	if w.stopping || w.slots[slot] != before {
		w.mu.Unlock()
		return
	}
	generation := 1
	if before != nil {
		_, after, _ := strings.Cut(before.name, ".")
		_, _ = fmt.Sscan(after, &generation)
		generation++
	}
	r := &replica{slot: slot, name: fmt.Sprintf("r%d.%d", slot, generation), number: len(w.history.Processes), gone: make(chan struct{})}
	w.slots[slot] = r
	w.history.Processes = append(w.history.Processes, judge.Process{Name: r.name, Life: judge.Span{From: time.Now()}})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	w.mu.Unlock()

	cfg := w.config
	cfg.Queues = slices.Clone(cfg.Queues)
	cfg.dialBroker = func(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return w.net.Dial(ctx, r.name, address)
	}
	cfg.Dedup.Memory = func() *dedup.Memory { return w.memory.By(w.wayOf(r)) }
	for i := range cfg.Queues {
		cfg.Queues[i].Forward.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := w.net.Dial(ctx, r.name, address)
			if err != nil {
				return nil, err
			}
			return &sendingConn{Conn: conn, sent: func(data []byte) {
				if !w.isDead(r) {
					w.service.sent(r.name, data)
				}
			}}, nil
		}
	}
	p, err := New(&cfg, w.logOf(r))
	if err != nil {
		w.t.Fatal(err)
	}
	w.logf("%s starts", r.name)
	w.work.Go(func() {
		p.live(ctx)
		w.bury(r, false)
		close(r.gone)
		w.logf("%s has ended", r.name)
	})
}

// kill ends a replica at once. Its goroutines find out by themselves.
func (w *world) kill(r *replica) {
	w.bury(r, true)
	r.stop()
}

// bury keeps all that a replica still does from others: its process has ended.
func (w *world) bury(r *replica, killed bool) {
	w.mu.Lock()
	p := &w.history.Processes[r.number]
	if !r.dead {
		r.dead, p.Killed, p.Life.To = true, killed, time.Now()
	}
	w.mu.Unlock()
	w.net.Kill(r.name)
}

func (w *world) logOf(r *replica) *slog.Logger {
	if !w.loud {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(storyWriter{w, r.name}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

type storyWriter struct {
	world *world
	name  string
}

func (s storyWriter) Write(line []byte) (int, error) {
	s.world.logf("%s: %s", s.name, strings.TrimSpace(string(line)))
	return len(line), nil
}

// publish sends all messages at their times.
func (w *world) publish() {
	type publication struct {
		at       time.Duration
		message  *simMessage
		conflict bool
	}
	var all []publication
	for i := range w.schedule.messages {
		m := &w.schedule.messages[i]
		for _, at := range m.at {
			all = append(all, publication{at, m, false})
		}
		if m.conflict > 0 {
			all = append(all, publication{m.conflict, m, true})
		}
	}
	slices.SortStableFunc(all, func(a, b publication) int { return int(a.at - b.at) })
	for _, p := range all {
		time.Sleep(time.Until(w.began.Add(p.at)))
		body := "body of " + p.message.id
		if p.conflict {
			if !w.awaitTried(p.message.id) {
				continue
			}
			body = "another body of " + p.message.id
		}
		w.publishOne(p.message, body, p.conflict)
	}
}

// awaitTried waits before a copy with another body is published, which could be the first else. False: it could for ever, as
// when a success was acknowledged without a record.
func (w *world) awaitTried(id string) bool {
	for range 100 {
		if w.isTried(id) {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// isTried tells whether a claim of an ID has led somewhere: it will not be forgotten.
func (w *world) isTried(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.history.Writes, func(write judge.Write) bool {
		return write.ID.Value == id && write.State != judge.Processing && write.State != judge.Absent
	})
}

func (w *world) publishOne(m *simMessage, body string, conflict bool) {
	w.mu.Lock()
	at := len(w.history.Publications)
	w.history.Publications = append(w.history.Publications, judge.Publication{
		ID: judge.ID{Queue: simQueue, Value: m.id}, At: time.Now(), Payload: judge.Payload{Body: body}, Destiny: m.destiny, Conflict: conflict,
	})
	w.mu.Unlock()
	confirmed := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.Publications[at].Confirmed = true
	}
	for !w.broker.Publish(simQueue, m.id, []byte(body), confirmed) {
		time.Sleep(100 * time.Millisecond)
	}
	w.logf("published %s: %s", m.id, body)
}
