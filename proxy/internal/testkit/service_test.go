package testkit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startService(t *testing.T, behaviour Behaviour) *Service {
	t.Helper()
	s, err := StartService(behaviour)
	must(t, err)
	closing(t, s)
	return s
}

// post sends a request on a connection of its own; status 0 is an error.
func post(ctx context.Context, url, key string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("body"))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Idempotency-Key", key)
	request.Header.Set("Delivery-Attempt", "2")
	request.Header.Set("Delivery-Outcome-Unknown", "true")
	request.Header.Set("RabbitMQ-Queue", "orders")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestServiceJournal(t *testing.T) {
	ctx := within(t, 20*time.Second)
	s := startService(t, func(r Received) Action {
		if r.Number == 1 {
			return Action{Status: 500}
		}
		return Action{Status: 201, Body: []byte("made"), Header: http.Header{"X-A": {"b"}}}
	})
	s.KeepBodies()
	for i, want := range []int{500, 201} {
		if status, _, err := post(ctx, s.URL+"/path", "k"); err != nil || status != want {
			t.Errorf("POST %d: %d, %v; want %d", i, status, err, want)
		}
	}
	must(t, s.Journal.WaitBegun(ctx, "k", 2))
	must(t, s.Journal.WaitAnswered(ctx, 1))
	entries := s.Journal.ByKey("k")
	if len(entries) != 2 || s.Journal.Count() != 2 || len(s.Journal.Keys()["k"]) != 2 {
		t.Fatalf("journal %+v", entries)
	}
	e := entries[1]
	if e.Attempt != "2" || !e.Unknown || e.Queue != "orders" || e.Path != "/path" || e.Number != 2 ||
		string(e.Body) != "body" || e.BodyLength != 4 || e.Status != 201 || e.Open() ||
		e.BodySHA256 != "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5" {
		t.Errorf("entry %+v", e)
	}
	if pairs := s.Journal.Overlaps("k"); len(pairs) != 0 {
		t.Errorf("overlaps %v", pairs)
	}
	s.Other(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(mustRequest(t, s.URL))
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound || s.Journal.Count() != 2 {
		t.Errorf("GET: %d, journal %d", response.StatusCode, s.Journal.Count())
	}
}

func mustRequest(t *testing.T, url string) *http.Request {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	return request
}

// TestServiceTellsWhetherTheWorkWasDone: whether it was is one thing, what the caller hears of it another.
func TestServiceTellsWhetherTheWorkWasDone(t *testing.T) {
	ctx := within(t, 20*time.Second)
	actions := map[string]Action{
		"answered": {Works: true}, "closed": {Works: true, Close: true}, "failed": {Status: 500}, "silent": {Works: true, Hang: true}, "stopped": {Works: true, Delay: time.Hour},
	}
	s := startService(t, func(r Received) Action { return actions[r.Key] })
	for key := range actions {
		soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		_, _, _ = post(soon, s.URL, key)
		cancel()
	}
	if _, err := s.Journal.Take(); err == nil {
		t.Error("the journal was taken while a POST was at work")
	}
	s.Stop()
	entries, err := s.Journal.Take()
	must(t, err)
	for _, e := range entries {
		if want := e.Key == "answered" || e.Key == "closed" || e.Key == "silent"; want == e.Worked.IsZero() || e.Worked.After(e.Ended) {
			t.Errorf("%s: worked at %v, ended at %v", e.Key, e.Worked, e.Ended)
		}
	}
	if len(entries) != len(actions) || s.Journal.Count() != 0 || len(s.Journal.ByKey("answered")) != 0 {
		t.Errorf("%d entries taken, %d left", len(entries), s.Journal.Count())
	}
}

func TestServiceOverlaps(t *testing.T) {
	ctx := within(t, 20*time.Second)
	release := make(chan struct{})
	s := startService(t, func(Received) Action { return Action{Wait: release} })
	answers := make(chan int, 2)
	for range 2 {
		go func() {
			status, _, _ := post(ctx, s.URL, "k")
			answers <- status
		}()
	}
	must(t, s.Journal.WaitBegun(ctx, "k", 2))
	if pairs := s.Journal.Overlaps("k"); len(pairs) != 1 {
		t.Errorf("overlaps %v, want one", pairs)
	}
	close(release)
	if a, b := <-answers, <-answers; a != 200 || b != 200 {
		t.Errorf("answers %d, %d", a, b)
	}
}

func TestServiceWorksOnWhenTheCallerIsGone(t *testing.T) {
	ctx := within(t, 20*time.Second)
	release := make(chan struct{})
	s := startService(t, func(Received) Action { return Action{Wait: release} })
	caller, cancel := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, _, err := post(caller, s.URL, "k")
		left <- err
	}()
	must(t, s.Journal.WaitBegun(ctx, "k", 1))
	cancel()
	if err := <-left; err == nil {
		t.Fatal("the caller got an answer")
	}
	if !s.Journal.ByKey("k")[0].Open() {
		t.Error("the work ended with the caller")
	}
	close(release)
	must(t, s.Journal.WaitAnswered(ctx, 1))
}

func TestServiceBreaksConnections(t *testing.T) {
	tests := []struct {
		name   string
		action Action
		want   func(status int, err error) bool
	}{
		{"close", Action{Close: true}, func(_ int, err error) bool { return errors.Is(err, io.EOF) }},
		{"reset", Action{Reset: true}, func(_ int, err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{
			"raw",
			Action{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")},
			func(status int, err error) bool { return status == 200 && errors.Is(err, io.ErrUnexpectedEOF) },
		},
		{"hang", Action{Hang: true}, func(_ int, err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{"delay", Action{Delay: time.Hour}, func(_ int, err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := startService(t, func(Received) Action { return test.action })
			ctx := within(t, 20*time.Second)
			if test.action.Hang || test.action.Delay > 0 {
				ctx = within(t, 200*time.Millisecond)
			}
			if status, _, err := post(ctx, s.URL, "k"); !test.want(status, err) {
				t.Errorf("status %d, err %v", status, err)
			}
			s.Stop()
			if e := s.Journal.ByKey("k"); len(e) != 1 || e[0].Open() || e[0].Status != 0 {
				t.Errorf("journal %+v", e)
			}
		})
	}
}

func TestServiceStopAndStart(t *testing.T) {
	ctx := within(t, 20*time.Second)
	s := startService(t, func(r Received) Action {
		if r.Number == 1 {
			return Action{Wait: make(chan struct{})}
		}
		return Action{}
	})
	broken := make(chan error, 1)
	go func() {
		_, _, err := post(ctx, s.URL, "k")
		broken <- err
	}()
	must(t, s.Journal.WaitBegun(ctx, "k", 1))
	s.Stop()
	if err := <-broken; err == nil {
		t.Error("a stopped service answered")
	}
	if _, _, err := post(ctx, s.URL, "k"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("POST while stopped: %v", err)
	}
	must(t, s.Start())
	if err := s.Start(); err == nil {
		t.Error("starting a running service: no error")
	}
	if status, _, err := post(ctx, s.URL, "k"); err != nil || status != 200 {
		t.Errorf("POST after start: %d, %v", status, err)
	}
	must(t, s.Shutdown(ctx))
	must(t, s.Shutdown(ctx))
}

func TestServiceShutdownAnswersWhatItHas(t *testing.T) {
	ctx := within(t, 20*time.Second)
	release := make(chan struct{})
	s := startService(t, func(Received) Action { return Action{Wait: release} })
	answers, ended := make(chan int, 1), make(chan error, 1)
	go func() {
		status, _, _ := post(ctx, s.URL, "k")
		answers <- status
	}()
	must(t, s.Journal.WaitBegun(ctx, "k", 1))
	go func() { ended <- s.Shutdown(ctx) }()
	close(release)
	if status := <-answers; status != 200 {
		t.Errorf("status %d", status)
	}
	must(t, <-ended)
}

func TestJournalWaitEnds(t *testing.T) {
	s := startService(t, nil)
	if err := s.Journal.WaitBegun(within(t, 50*time.Millisecond), "k", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
}
