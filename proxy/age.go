package proxy

import (
	"sync"
	"time"
)

// settlingTime is how long a queue must have been known before anything is put into it that is acknowledged elsewhere
// for that. A node of RabbitMQ 3.10 that is killed within a second of the declaration of a quorum queue comes back with a
// queue that has no leader, and what it had confirmed is out of reach for good: the declaration is on disk, the
// registration of the queue's log is not yet (ra_directory saves when it was idle for half a second,
// https://github.com/rabbitmq/ra/blob/main/src/ra_directory.erl). Whoever finds a queue cannot tell its age: another
// replica may have declared it just before.
const settlingTime = 2 * time.Second

// ages remembers since when queues are known. It is safe for concurrent use; the zero value knows none.
type ages struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// seen tells that a queue is there, and returns how long it has to settle yet.
func (a *ages) seen(queue string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := a.since[queue]
	if !known {
		if a.since == nil {
			a.since = map[string]time.Time{}
		}
		since = time.Now()
		a.since[queue] = since
	}
	return settlingTime - time.Since(since)
}

// gone tells that a queue is not there: when it is seen again it is another one.
func (a *ages) gone(queue string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, queue)
}
