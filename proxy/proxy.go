package proxy

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// Proxy is the whole program: one per process.
type Proxy struct {
	cfg       *Config
	log       *slog.Logger
	registry  *prometheus.Registry
	started   time.Time
	store     *dedup.Store
	storeGate *gate
	reload    func() (*Config, error)
	publisher *publisher
	queues    []*queue
	draining  atomic.Bool
	listening chan string // the health listener's address, once
}

var errGraceOver = errors.New("SHUTDOWN_GRACE is over")

// New wires a Proxy together. It connects to nothing.
func New(cfg *Config, log *slog.Logger) (*Proxy, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := newMetrics(registry, cfg.Version)
	reload := cfg.reload
	if reload == nil {
		reload = func() (*Config, error) { return cfg, nil }
	}
	store, err := openStore(cfg.Dedup, reload, dedup.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		cfg: cfg, log: log, registry: registry, started: time.Now(), store: store,
		reload: reload, publisher: newPublisher(newBroker(cfg)),
		listening: make(chan string, 1),
	}
	p.publisher.alarm = p.publishingAlarm
	p.storeGate = newGate(newPart("store", log, m.storeUp), p.probeStore())
	for _, qc := range cfg.Queues {
		q, err := p.newQueue(qc, m)
		if err != nil {
			return nil, err
		}
		p.queues = append(p.queues, q)
	}
	return p, nil
}

// publishingAlarm shows in every queue that the broker blocks publishers, or that it no longer does.
func (p *Proxy) publishingAlarm(err error) {
	for _, q := range p.queues {
		if err != nil {
			q.letters.down(err)
		} else {
			q.letters.up()
		}
	}
}

// probeStore asks the store whether it takes claims, under a key of this process alone.
func (p *Proxy) probeStore() func(context.Context) error {
	key := probeKey(p.cfg)
	return func(ctx context.Context) error { return p.store.Probe(ctx, key) }
}

// probeKey is a fresh key under the prefix of the queues, which a user may be limited to.
func probeKey(cfg *Config) string {
	prefix, consumer := "rabbitonce", "probe"
	if len(cfg.Queues) > 0 {
		prefix, consumer = cfg.Queues[0].Dedup.Prefix, cfg.Queues[0].Dedup.Consumer
	}
	token := dedup.NewToken()
	return dedup.Key(prefix, consumer, dedup.ID{Source: "probe", Value: hex.EncodeToString(token[:])})
}

func (p *Proxy) newQueue(cfg QueueConfig, m *metrics) (*queue, error) {
	service, err := forward.New(cfg.Forward, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("open service of queue %s: %w", cfg.Name, err)
	}
	log := p.log.With("queue", cfg.Name)
	q := &queue{
		cfg: cfg, log: log, broker: newBroker(p.cfg), publisher: p.publisher, store: p.store, service: service,
		rules:       rules{retry: cfg.Retry, onUnknown: cfg.Forward.OnUnknown, unknownMax: cfg.Forward.UnknownMax},
		metrics:     m.queue(cfg.Name),
		serviceGate: newGate(newPart("service", log, m.serviceUp.WithLabelValues(cfg.Name)), probeService(service)),
		storeGate:   p.storeGate,
		sessionPart: newPart("consumer", log, m.sessionUp.WithLabelValues(cfg.Name)),
		letters:     newQuietPart("dead letters", log, m.lettersUp.WithLabelValues(cfg.Name)),
		parking:     newParking(newQuietPart("wait queues", log, m.parkingUp.WithLabelValues(cfg.Name))),
		storeDown:   p.cfg.Dedup.OnStoreDown,
		waitSteps:   waitSteps(cfg.Retry.Backoff, cfg.Retry.Hold),
		late:        make(chan struct{}, lateSuccesses),
		copies:      newCopies(),
		room:        newRoom(cfg.Prefetch),
		throttle:    newThrottle(cfg.Forward.Concurrency, cfg.BrakeAfter),
		pacer:       newPacer(cfg.Forward.Rate),
	}
	q.intake = newIntake(q.handle, q.handlers.Go, q.held)
	q.serviceGate.ready = q.throttle.restart
	q.serviceGate.patience = probeTimeout + forward.LookupTimeout
	q.broker.declare = p.cfg.sourceArguments(cfg)
	if cfg.Ordering.kept() {
		q.lanes = newLanes()
	}
	m.counts(cfg.Name, q.inFlight.Load, q.waiting.Load)
	m.paused(cfg.Name, "service", func() bool { return !q.serviceGate.isOpen() })
	m.paused(cfg.Name, "store", func() bool { return !q.needsNoStore() && !q.storeGate.isOpen() })
	m.paused(cfg.Name, "brake", func() bool { return q.brakeStatus() != nil })
	m.paused(cfg.Name, "broker", func() bool { return !q.sessionPart.status().Up })
	return q, nil
}

// Addr waits for the health listener and returns its address.
func (p *Proxy) Addr() string {
	addr := <-p.listening
	p.listening <- addr
	return addr
}

// Run works until ctx ends, then drains within SHUTDOWN_GRACE and returns nil. An error means that it could not
// start. Whatever is missing otherwise, broker, store or service, is waited for.
func (p *Proxy) Run(ctx context.Context) error {
	h, err := listenHealth(p.cfg.HealthAddr, p, p.registry, p.log)
	if err != nil {
		return err
	}
	defer h.close()
	p.listening <- h.listener.Addr().String()
	p.log.Info("started", "version", p.cfg.Version, "health", h.listener.Addr().String(), "queues", len(p.queues))
	p.live(ctx)
	return nil
}

// live is Run, but for the health listener.
func (p *Proxy) live(ctx context.Context) {
	for _, w := range p.cfg.Warnings {
		p.log.Warn(w)
	}

	var background sync.WaitGroup
	life, die := context.WithCancel(context.Background())
	defer func() { die(); endedWithin(allOf(&background), lastPatience) }()
	background.Go(func() { _ = p.store.Run(life) })
	background.Go(func() { p.storeGate.run(life) })
	background.Go(func() { p.advise(life) })

	work, abort := context.WithCancelCause(life)
	hold, drain := context.WithCancelCause(work)
	var queues sync.WaitGroup
	for _, q := range p.queues {
		background.Go(func() { q.serviceGate.run(hold) })
		queues.Go(func() { q.run(work, hold) })
	}
	<-ctx.Done()
	p.shutdown(&queues, drain, abort)
}

// shutdown drains: no new deliveries, what is not in a POST goes back, what is in a POST finishes; what still runs
// near the end of SHUTDOWN_GRACE is cut off and recorded as unknown.
func (p *Proxy) shutdown(queues *sync.WaitGroup, drain, abort context.CancelCauseFunc) {
	p.draining.Store(true)
	p.log.Info("draining", "grace", p.cfg.ShutdownGrace.String())
	began := time.Now()
	drain(errDraining)
	ended := allOf(queues)
	reserve := min(3*time.Second, p.cfg.ShutdownGrace/3) // for what ends in the cut, and for closing
	if !endedWithin(ended, p.cfg.ShutdownGrace-reserve) {
		p.log.Warn("SHUTDOWN_GRACE is almost over: requests that are still under way are cut off; their outcome is unknown")
		abort(errGraceOver)
		if !endedWithin(ended, reserve/2) {
			p.log.Warn("exiting with work unfinished: unacknowledged deliveries go back to their queues")
		}
	}
	abort(errGraceOver)
	p.closeConnections(reserve / 3)
	p.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond).String())
}

// closeConnections ends all connections side by side; a peer that does not answer in time is left.
func (p *Proxy) closeConnections(limit time.Duration) {
	var closing sync.WaitGroup
	closing.Go(p.publisher.closeNow)
	for _, q := range p.queues {
		closing.Go(q.broker.close)
		q.service.Close()
	}
	endedWithin(allOf(&closing), limit)
}

// lastPatience is how long the process waits, at its very end, for a store that does not answer.
const lastPatience = 200 * time.Millisecond

// allOf is closed when a group has ended.
func allOf(group *sync.WaitGroup) <-chan struct{} {
	ended := make(chan struct{})
	go func() { defer close(ended); group.Wait() }()
	return ended
}

func endedWithin(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// advise logs what the store's configuration could cost, once it answers.
func (p *Proxy) advise(ctx context.Context) {
	if p.storeGate.wait(ctx) != nil {
		return
	}
	for _, w := range p.store.Advise(ctx) {
		p.log.Warn(w)
	}
}
