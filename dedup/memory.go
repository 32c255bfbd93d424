package dedup

import (
	"context"
	"sync"
	"time"
)

// memory keeps records in a map: for one replica, gone with the process.
type memory struct {
	clock   func() int64                   // milliseconds
	written func(op *operation, r *record) // told of each write; nil: nobody is

	mu      sync.Mutex
	entries map[string]entry
	sweepAt int64 // when to drop what has expired
}

type entry struct {
	value   string
	expires int64
}

// sweepEvery bounds how long an expired record takes up memory.
const sweepEvery = time.Minute

func newMemory() *memory {
	return &memory{
		clock:   func() int64 { return time.Now().UnixMilli() },
		entries: map[string]entry{},
	}
}

func (m *memory) run(_ context.Context, group []*call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	m.sweepLocked(now)
	for _, c := range group {
		c.answer, c.err = m.applyLocked(&c.op, now)
	}
}

func (m *memory) applyLocked(op *operation, now int64) (answer, error) {
	var found *record
	if value, ok := m.getLocked(op.key, now); ok {
		var err error
		if found, err = parseRecord(value, now); err != nil {
			return answer{}, err
		}
	}
	d := decide(found, op, now)
	if d.write && m.written != nil {
		m.written(op, d.record)
	}
	switch {
	case d.write && d.record == nil:
		delete(m.entries, op.key)
	case d.write:
		m.entries[op.key] = entry{string(appendRecord(nil, d.record)), expiry(d.record, op, now)}
	}
	return answer{letter: d.letter, now: now, record: d.record}, nil
}

func (m *memory) getLocked(key string, now int64) (string, bool) {
	e, ok := m.entries[key]
	if !ok || e.expires <= now {
		return "", false
	}
	return e.value, true
}

// expiry is the retention from now, or from when a waiting record is due: it must outlive the wait.
func expiry(r *record, op *operation, now int64) int64 {
	if op.word == wordWait {
		return r.notBefore + op.retention
	}
	return now + op.retention
}

func (m *memory) sweepLocked(now int64) {
	if now < m.sweepAt {
		return
	}
	for key, e := range m.entries {
		if e.expires <= now {
			delete(m.entries, key)
		}
	}
	m.sweepAt = now + sweepEvery.Milliseconds()
}

func (m *memory) get(_ context.Context, key string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.getLocked(key, m.clock())
	return value, ok, nil
}

func (m *memory) look(_ context.Context, key string) (sight, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	value, found := m.getLocked(key, now)
	if !found {
		return sight{now: now}, nil
	}
	return sight{value: value, found: true, now: now, left: m.entries[key].expires - now}, nil
}

func (m *memory) ping(context.Context) error { return nil }

func (m *memory) advise(context.Context) []string {
	return []string{"DEDUP_STORE=memory keeps claims in this process alone: they end with it, and another replica does not see them; use redis for work that counts"}
}

func (m *memory) examine(context.Context) ([]Server, error) { return nil, nil }

func (m *memory) close() error { return nil }
