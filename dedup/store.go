package dedup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Store keeps the claim records of all queues of a process. It is safe for
// concurrent use. See the package documentation for its life cycle.
type Store struct {
	backend   backend
	committer *committer
	keeper    *keeper
	metrics   *metrics
	calls     sync.Pool // those somebody waits for; one that nobody waited for to its end is not used again

	closing  sync.Once
	closeErr error
}

// Option changes how a Store is made.
type Option func(*options)

type options struct {
	registerer prometheus.Registerer
}

// WithRegisterer registers the store's metrics. Without it they count unseen.
func WithRegisterer(r prometheus.Registerer) Option {
	return func(o *options) { o.registerer = r }
}

// New returns the store that the configuration names. It does not connect:
// Ping tells whether the store answers.
func New(cfg Config, opts ...Option) (*Store, error) {
	if cfg.Store == StoreMemory && cfg.Memory != nil {
		return newStore(cfg.Memory(), opts), nil
	}
	if cfg.Store == StoreMemory {
		return NewMemory(opts...), nil
	}
	b, err := newRedis(cfg)
	if err != nil {
		return nil, err
	}
	return newStore(b, opts), nil
}

// NewMemory returns a store that lives in this process alone.
func NewMemory(opts ...Option) *Store {
	return newStore(newMemory(), opts)
}

func newStore(b backend, opts []Option) *Store {
	var o options
	for _, option := range opts {
		option(&o)
	}
	s := &Store{backend: b, committer: newCommitter(b), metrics: newMetrics(o.registerer)}
	s.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	s.keeper = newKeeper(s.committer, s.metrics)
	return s
}

// Run renews leases until the context ends, and then closes the store. End the
// context after the last operation: from then on they return ErrClosed.
func (s *Store) Run(ctx context.Context) error {
	s.keeper.run(ctx)
	return s.Close()
}

// Close refuses new operations, waits for those in flight and closes the
// connections. Leases are not renewed any more. It may be called more than
// once, and by Run.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.committer.close()
		s.closeErr = s.backend.close()
	})
	return s.closeErr
}

// Ping tells whether the store answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.backend.ping(ctx); err != nil {
		return fmt.Errorf("ping store: %w", err)
	}
	return nil
}

// Advise returns warnings about how the store is set up, for the log at
// start. It is silent about what it is not allowed to ask.
func (s *Store) Advise(ctx context.Context) []string {
	return s.backend.advise(ctx)
}

// Succeed records that the work is done. It is unconditional, whoever holds the
// record: a success is a fact. Repeat it until it returns nil; an error may
// also say that too few replicas have it. Whoever holds the lease drops it
// afterwards.
func (s *Store) Succeed(ctx context.Context, key string, status int, fp Fingerprint, keep time.Duration) error {
	_, err := s.settle(ctx, operation{
		word: wordSucceed, key: key, status: clampStatus(status), fingerprint: fp, retention: retention(keep), confirm: true,
	})
	return err
}

// Wait gives the record back, to be claimed again after the delay. With
// WaitUnknown that is never before the deadline of the request, which may
// still be at work.
func (s *Store) Wait(ctx context.Context, l *Lease, delay time.Duration, class WaitClass) (Settlement, error) {
	op := l.operation(wordWait)
	op.delay, op.class = milliseconds(delay), class
	return s.settleLease(ctx, l, op)
}

// Bury marks the ID dead, before its letter is published. deadID comes from
// NewDeadID; repeat a failed call with the same. unknown says that this
// attempt's outcome is unknown.
func (s *Store) Bury(ctx context.Context, l *Lease, reason Reason, deadID string, unknown bool) (Settlement, error) {
	id, ok := parseDeadID(deadID)
	if !ok {
		return 0, fmt.Errorf("bury: %q is no dead-id", deadID)
	}
	op := l.operation(wordBury)
	op.reason, op.deadID, op.unknown = reason, id, unknown
	return s.settleLease(ctx, l, op)
}

// Release undoes the claim, when no request began: the record is as the claim
// found it, and gone when the claim created it.
func (s *Store) Release(ctx context.Context, l *Lease) (Settlement, error) {
	return s.settleLease(ctx, l, l.operation(wordRelease))
}

// Clear writes down that no request for this ID has worked or is at work, as the service said when it was asked: what was
// unknown is known now. The lease lives on. Only Release brings the flag back.
func (s *Store) Clear(ctx context.Context, l *Lease) (Settlement, error) {
	settlement, err := s.settle(ctx, l.operation(wordClear))
	if err == nil && settlement != Applied {
		l.Drop()
	}
	return settlement, err
}

// Undead deletes the record of a dead letter that is safely published, so that
// the message is processed again when it is put back. A record with another
// dead-id, and one whose outcome was ever unknown, stays.
func (s *Store) Undead(ctx context.Context, key, deadID string) error {
	id, ok := parseDeadID(deadID)
	if !ok {
		return fmt.Errorf("undead: %q is no dead-id", deadID)
	}
	_, err := s.settle(ctx, operation{word: wordUndead, key: key, deadID: id})
	return err
}

// Inspect returns the record of a key, and false when there is none.
func (s *Store) Inspect(ctx context.Context, key string) (Record, bool, error) {
	value, found, err := s.backend.get(ctx, key)
	if err != nil {
		return Record{}, false, fmt.Errorf("inspect: %w", err)
	}
	if !found {
		return Record{}, false, nil
	}
	r, err := parseRecord(value, time.Now().UnixMilli())
	if err != nil {
		return Record{}, false, fmt.Errorf("inspect: %w", err)
	}
	return r.export(), true, nil
}

// operation returns what every operation of the lease's holder begins with.
func (l *Lease) operation(w word) operation {
	return operation{word: w, key: l.key, token: l.token, retention: l.retention}
}

// settleLease ends the lease when the store has answered, whatever the answer:
// either the record is changed, or it was not ours.
func (s *Store) settleLease(ctx context.Context, l *Lease, op operation) (Settlement, error) {
	settlement, err := s.settle(ctx, op)
	if err == nil {
		l.Drop()
	}
	return settlement, err
}

func (s *Store) settle(ctx context.Context, op operation) (Settlement, error) {
	answer, err := s.do(ctx, op, time.Now())
	if err != nil {
		return 0, err
	}
	settlement, ok := answer.settlement()
	if !ok {
		return 0, fmt.Errorf("%s: the store answered %q", op.word, answer.letter)
	}
	return settlement, nil
}

// do runs one operation. When the context ends first the operation is taken
// back if it has not left yet; otherwise it may take effect all the same.
func (s *Store) do(ctx context.Context, op operation, sent time.Time) (answer, error) {
	a, err := s.await(ctx, op, sent)
	s.metrics.count(op.word, err)
	if isForeign(err) {
		return answer{}, fmt.Errorf("%s: key %q: %w: %w", op.word, op.key, ErrForeignRecord, err)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", op.word, err)
	}
	return a, nil
}

func (s *Store) await(ctx context.Context, op operation, sent time.Time) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	c := s.calls.Get().(*call)
	c.op, c.sent = op, sent
	if err := s.committer.submit(c); err != nil {
		return answer{}, err
	}
	select {
	case <-c.done:
		a, err := c.answer, c.err
		*c = call{done: c.done}
		s.calls.Put(c)
		return a, err
	case <-ctx.Done():
		s.committer.cancel(c)
		return answer{}, context.Cause(ctx)
	}
}

// retention is at least a millisecond: no key is ever without an expiry.
func retention(d time.Duration) int64 {
	return max(1, milliseconds(d))
}

// clampStatus fits a status into the two bytes a record has for it.
func clampStatus(status int) uint16 {
	if status < 0 || status > 999 {
		return 0
	}
	return uint16(status)
}
