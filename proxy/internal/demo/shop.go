package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// shop is a service that charges the orders POSTed to it. It looks at no key: an order that comes twice is charged twice.
// Its journal survives its crashes, as a database would.
type shop struct {
	*testkit.Service

	mu      sync.Mutex
	charges []string         // the journal: the ID of each charge
	posts   map[string]int   // requests by order, refused ones included
	holds   map[string]*hold // answers to hold back, by order
}

// hold keeps the answer to the next charge of one order back.
type hold struct {
	charged chan struct{} // closed when the order is charged
	release chan struct{} // the answer waits until this is closed
}

// workTime is how long a charge takes after it is in the journal.
const workTime = 10 * time.Millisecond

func openShop() (*shop, error) {
	s := &shop{posts: map[string]int{}, holds: map[string]*hold{}}
	service, err := testkit.StartService(s.charge)
	if err != nil {
		return nil, err
	}
	service.KeepBodies()
	s.Service = service
	return s, nil
}

// charge handles a POST.
func (s *shop) charge(r testkit.Received) testkit.Action {
	var o struct {
		MessageID string `json:"messageId"`
		Amount    int    `json:"amount"`
	}
	err := json.Unmarshal(r.Body, &o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts[o.MessageID]++
	if r.ReadError != nil || err != nil || o.Amount <= 0 {
		return testkit.Action{Status: http.StatusBadRequest, Body: []byte("the amount is no number\n")}
	}
	s.charges = append(s.charges, o.MessageID)
	action := testkit.Action{Delay: workTime}
	if h := s.holds[o.MessageID]; h != nil {
		delete(s.holds, o.MessageID)
		action.Wait = h.release
		close(h.charged)
	}
	return action
}

// holdBack holds the answer to the next charge of an order.
func (s *shop) holdBack(id string) *hold {
	h := &hold{charged: make(chan struct{}), release: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[id] = h
	return h
}

// wait returns nil once the order is charged and its answer held.
func (h *hold) wait(ctx context.Context) error {
	select {
	case <-h.charged:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a charge: %w", context.Cause(ctx))
	}
}

// journal returns the ID of each charge so far.
func (s *shop) journal() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// received returns how many POSTs of an order there were.
func (s *shop) received(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts[id]
}
