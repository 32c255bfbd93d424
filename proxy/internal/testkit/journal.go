package testkit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Received is one POST as the service saw it.
type Received struct {
	Key     string // Idempotency-Key
	Attempt string // Delivery-Attempt
	Unknown bool   // Delivery-Outcome-Unknown: true
	Queue   string // RabbitMQ-Queue

	Path       string
	URI        string // path and query as they were sent
	Header     http.Header
	BodyLength int
	BodySHA256 string // hexadecimal
	Body       []byte // nil unless the service keeps bodies
	ReadError  error  // the body did not arrive whole

	Number int // which POST of this key it is: 1 for the first
}

// Entry is a line of the journal.
type Entry struct {
	Received
	Began  time.Time // when the headers had arrived
	Worked time.Time // when its Action.Works came to pass; zero: it did not
	Ended  time.Time // when the work was done, before the answer left; zero while it works
	Status int       // what was answered; 0 while it works, and when the connection was ended without an answer
}

// Open tells whether the request is still being worked on.
func (e Entry) Open() bool { return e.Ended.IsZero() }

// Journal holds every POST that a Service received, in order of arrival. It is safe for concurrent use.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
	places  map[string][]int // by key, in entries
	changed chan struct{}    // closed and replaced at each change
}

func newJournal() *Journal {
	return &Journal{places: map[string][]int{}, changed: make(chan struct{})}
}

// begin appends an entry and returns its place, and which POST of its key it is.
func (j *Journal) begin(r Received) (place, number int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	place = len(j.entries)
	j.places[r.Key] = append(j.places[r.Key], place)
	r.Number = len(j.places[r.Key])
	j.entries = append(j.entries, Entry{Received: r, Began: time.Now()})
	j.notifyLocked()
	return place, r.Number
}

func (j *Journal) worked(place int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[place].Worked = time.Now()
	j.notifyLocked()
}

func (j *Journal) end(place, status int, ended time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[place].Ended, j.entries[place].Status = ended, status
	j.notifyLocked()
}

func (j *Journal) notifyLocked() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// Entries returns a copy of the journal.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Take returns the journal and begins a new one. An error says that a POST is still being worked on.
func (j *Journal) Take() ([]Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Open() {
			return nil, fmt.Errorf("take the journal: a POST of %s is still being worked on", e.Key)
		}
	}
	taken := j.entries
	j.entries, j.places = nil, map[string][]int{}
	j.notifyLocked()
	return taken, nil
}

// Count returns how many POSTs there were.
func (j *Journal) Count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries)
}

// ByKey returns the POSTs of one key.
func (j *Journal) ByKey(key string) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := make([]Entry, 0, len(j.places[key]))
	for _, place := range j.places[key] {
		entries = append(entries, j.entries[place])
	}
	return entries
}

// Keys returns the entries by key.
func (j *Journal) Keys() map[string][]Entry {
	keys := map[string][]Entry{}
	for _, e := range j.Entries() {
		keys[e.Key] = append(keys[e.Key], e)
	}
	return keys
}

// Overlaps returns the pairs of POSTs of one key that were worked on at the same time.
func (j *Journal) Overlaps(key string) [][2]Entry {
	entries := j.ByKey(key)
	var pairs [][2]Entry
	for i, later := range entries {
		for _, earlier := range entries[:i] {
			if earlier.Open() || later.Began.Before(earlier.Ended) {
				pairs = append(pairs, [2]Entry{earlier, later})
			}
		}
	}
	return pairs
}

// Wait returns nil once the condition holds for the journal. It is asked again at each change, and must neither change
// nor keep the entries.
func (j *Journal) Wait(ctx context.Context, condition func([]Entry) bool) error {
	for {
		j.mu.Lock()
		holds, changed, count := condition(j.entries), j.changed, len(j.entries)
		j.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the journal (%d entries): %w", count, context.Cause(ctx))
		}
	}
}

// WaitBegun returns nil once n POSTs of the key have begun.
func (j *Journal) WaitBegun(ctx context.Context, key string, n int) error {
	return j.Wait(ctx, func(entries []Entry) bool {
		return count(entries, func(e Entry) bool { return e.Key == key }) >= n
	})
}

// WaitAnswered returns nil once n POSTs, of whatever key, were answered with a 2xx.
func (j *Journal) WaitAnswered(ctx context.Context, n int) error {
	return j.Wait(ctx, func(entries []Entry) bool {
		return count(entries, func(e Entry) bool { return e.Status/100 == 2 }) >= n
	})
}

func count(entries []Entry, match func(Entry) bool) int {
	n := 0
	for _, e := range entries {
		if match(e) {
			n++
		}
	}
	return n
}
