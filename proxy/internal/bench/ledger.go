package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// ledger counts the POSTs of a run by message, and remembers when the first and the last came. Messages are numbered from
// 0. It is safe for concurrent use.
type ledger struct {
	prefix string // of the run's IDs, before the number
	counts []atomic.Uint32

	posts    atomic.Int64 // of the run's IDs
	distinct atomic.Int64
	strange  atomic.Int64 // POSTs with another key, or none
	first    atomic.Int64 // nanoseconds since 1970, as is the next
	last     atomic.Int64

	sent  []atomic.Int64 // by message, when it was published; nil when latency is not measured
	taken []atomic.Int64 // how long until its first POST; nil likewise
}

// idDigits is how many digits of an ID are the message's number.
const idDigits = 12

func newLedger(prefix string, messages int) *ledger {
	return &ledger{prefix: prefix, counts: make([]atomic.Uint32, messages)}
}

// timed makes the ledger measure latency.
func (l *ledger) timed() {
	l.sent, l.taken = make([]atomic.Int64, len(l.counts)), make([]atomic.Int64, len(l.counts))
}

// id is the ID of a message, in the shape of a UUID.
func (l *ledger) id(message int) string { return fmt.Sprintf("%s%0*d", l.prefix, idDigits, message) }

// number undoes id.
func (l *ledger) number(id []byte) (int, bool) {
	digits, found := bytes.CutPrefix(id, []byte(l.prefix))
	if !found || len(digits) != idDigits {
		return 0, false
	}
	n, err := strconv.Atoi(string(digits))
	return n, err == nil && n >= 0 && n < len(l.counts)
}

// published is told just before a message leaves.
func (l *ledger) published(message int, now time.Time) {
	if l.sent != nil {
		l.sent[message].Store(now.UnixNano())
	}
}

// note takes a POST down. The key may be quoted.
func (l *ledger) note(key []byte, now time.Time) {
	n, known := l.number(bytes.Trim(key, `"`))
	if !known {
		l.strange.Add(1)
		return
	}
	at := now.UnixNano()
	l.first.CompareAndSwap(0, at)
	for last := l.last.Load(); at > last && !l.last.CompareAndSwap(last, at); last = l.last.Load() {
	}
	if l.counts[n].Add(1) == 1 {
		if l.sent != nil {
			l.taken[n].Store(at - l.sent[n].Load())
		}
		l.distinct.Add(1)
	}
	l.posts.Add(1)
}

// latencies are the times from publishing to the first POST, sorted.
func (l *ledger) latencies() []time.Duration {
	all := make([]time.Duration, len(l.taken))
	for i := range l.taken {
		all[i] = time.Duration(l.taken[i].Load())
	}
	slices.Sort(all)
	return all
}

func (l *ledger) firstPost() time.Time { return time.Unix(0, l.first.Load()) }
func (l *ledger) lastPost() time.Time  { return time.Unix(0, l.last.Load()) }

// missing and extra are how many messages were never POSTed, and how many POSTs there were beyond the first of a message.
func (l *ledger) missing() int { return len(l.counts) - int(l.distinct.Load()) }
func (l *ledger) extra() int   { return int(l.posts.Load() - l.distinct.Load()) }
