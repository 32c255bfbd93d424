package dedup

import (
	"context"
	"time"
)

// Memory is a store's memory that others share, as replicas share a server. Each reaches it by a way of its own.
type Memory struct {
	*memory
	way Way
}

// Way leads a group of operations to a shared memory. It calls trip once, and the operations have taken effect; or not at
// all; or returns an error after it called trip: then they have taken effect, and nobody hears of it.
type Way func(ctx context.Context, trip func()) error

// Written is one change of a record.
type Written struct {
	Key    string
	Token  Token   // of the claim that changed it; that of a success is empty
	Record *Record // nil: it was deleted
	At     time.Time
}

// SharedMemory returns an empty memory. written is told of each change, in their order, and must not call the store; nil
// is nobody.
func SharedMemory(written func(Written)) *Memory {
	m := newMemory()
	if written != nil {
		m.written = func(op *operation, r *record) {
			w := Written{Key: op.key, Token: op.token, At: time.UnixMilli(m.clock())}
			if r != nil {
				exported := r.export()
				w.Record = &exported
			}
			written(w)
		}
	}
	return &Memory{memory: m, way: func(_ context.Context, trip func()) error { trip(); return nil }}
}

// By is the same memory, reached another way.
func (m *Memory) By(way Way) *Memory { return &Memory{memory: m.memory, way: way} }

func (m *Memory) run(ctx context.Context, group []*call) {
	err := m.way(ctx, func() { m.memory.run(ctx, group) })
	if err == nil {
		return
	}
	for _, c := range group {
		c.answer, c.err = answer{}, err
	}
}

func (m *Memory) ping(ctx context.Context) error { return m.way(ctx, func() {}) }

func (m *Memory) get(ctx context.Context, key string) (value string, found bool, err error) {
	way := m.way(ctx, func() { value, found, err = m.memory.get(ctx, key) })
	if way != nil {
		return "", false, way
	}
	return value, found, err
}

func (m *Memory) look(ctx context.Context, key string) (s sight, err error) {
	way := m.way(ctx, func() { s, err = m.memory.look(ctx, key) })
	if way != nil {
		return sight{}, way
	}
	return s, err
}

func (m *Memory) advise(context.Context) []string { return nil }
