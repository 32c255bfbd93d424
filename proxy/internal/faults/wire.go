package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// wire writes down every POST as it leaves a process, before a fault can touch it. Safe for concurrent use.
type wire struct {
	mu       sync.Mutex
	requests []check.Request
	trouble  error // a request that could not be read: the journal has a hole
}

// watch reads what goes through a process's way to the service.
func (w *wire) watch(p *testkit.FaultProxy) {
	p.Watch(testkit.ToServer, func(u testkit.Unit) {
		if chunk := u.Fresh(); bytes.HasPrefix(chunk, []byte("POST ")) {
			w.note(chunk, time.Now())
		}
	})
}

// note reads the head of a request. It comes in one piece: the program writes it so, and it is small here.
func (w *wire) note(chunk []byte, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(chunk)))
	if err != nil {
		w.trouble = fmt.Errorf("read a request on the wire: %w: %q", err, chunk)
		return
	}
	attempt, err := strconv.Atoi(request.Header.Get("Delivery-Attempt"))
	if err != nil {
		w.trouble = fmt.Errorf("read a request on the wire: %w: %q", err, chunk)
		return
	}
	w.requests = append(w.requests, check.Request{
		ID:      check.ID{Queue: request.Header.Get("RabbitMQ-Queue"), Value: request.Header.Get("Idempotency-Key")},
		Process: request.Header.Get(processHeader), Attempt: attempt,
		Unknown: request.Header.Get("Delivery-Outcome-Unknown") == "true", Sent: at,
	})
}

// take returns what was sent since the last time, in order.
func (w *wire) take() ([]check.Request, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, err := w.requests, w.trouble
	w.requests, w.trouble = nil, nil
	slices.SortStableFunc(taken, func(a, b check.Request) int { return a.Sent.Compare(b.Sent) })
	return taken, err
}

// joined adds to each request what the service has seen of it. An entry of the service's without a request on the wire is an
// error.
func joined(requests []check.Request, entries []testkit.Entry) ([]check.Request, error) {
	type name struct {
		key, process, attempt string
	}
	seen := map[name][]testkit.Entry{}
	for _, e := range entries {
		n := name{e.Key, e.Header.Get(processHeader), e.Attempt}
		seen[n] = append(seen[n], e)
	}
	for i := range requests {
		r := &requests[i]
		n := name{r.ID.Value, r.Process, strconv.Itoa(r.Attempt)}
		if len(seen[n]) == 0 {
			continue // it never arrived
		}
		e := seen[n][0]
		seen[n] = seen[n][1:]
		r.Began, r.Ended, r.Status = e.Began, e.Ended, e.Status
		if !e.Worked.IsZero() {
			r.Worked, r.Ended = true, e.Worked
		}
	}
	for n, rest := range seen {
		if len(rest) > 0 {
			return nil, fmt.Errorf("the service has seen attempt %s of %s from %s, the wire has not", n.attempt, n.key, n.process)
		}
	}
	return requests, nil
}
