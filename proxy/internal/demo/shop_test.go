package main

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func opened(t *testing.T) *shop {
	t.Helper()
	s, err := openShop()
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// send POSTs an order and returns the status.
func send(t *testing.T, s *shop, o order) int {
	t.Helper()
	body, err := o.body()
	must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(s.URL+"/orders", "application/json", bytes.NewReader(body))
	must(t, err)
	must(t, response.Body.Close())
	return response.StatusCode
}

func TestShopChargesWhateverComes(t *testing.T) {
	s := opened(t)
	poison := newOrder(2)
	poison.Amount = "twelve"
	for _, test := range []struct {
		order order
		want  int
	}{{newOrder(1), 200}, {poison, 400}, {newOrder(1), 200}} {
		if status := send(t, s, test.order); status != test.want {
			t.Errorf("%v: status %d, want %d", test.order, status, test.want)
		}
	}
	if diff := cmp.Diff([]string{"order-01", "order-01"}, s.journal()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if n := s.received("order-02"); n != 1 {
		t.Errorf("the poison order was received %d times, want 1", n)
	}
}

func TestShopHoldsOneAnswer(t *testing.T) {
	s := opened(t)
	h := s.holdBack("order-01")
	answered := make(chan int)
	go func() { answered <- send(t, s, newOrder(1)) }()
	must(t, h.wait(t.Context()))
	if diff := cmp.Diff([]string{"order-01"}, s.journal()); diff != "" {
		t.Errorf("journal while held (-want +got):\n%s", diff)
	}
	if status := send(t, s, newOrder(1)); status != 200 { // the next charge is not held
		t.Errorf("status %d, want 200", status)
	}
	select {
	case <-answered:
		t.Error("the answer was not held")
	default:
	}
	close(h.release)
	if status := <-answered; status != 200 {
		t.Errorf("status %d, want 200", status)
	}
}
