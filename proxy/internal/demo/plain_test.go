package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// settlements notes what was done with a delivery.
type settlements struct{ done string }

func (s *settlements) Ack(uint64, bool) error    { s.done += "ack"; return nil }
func (s *settlements) Reject(uint64, bool) error { s.done += "reject"; return nil }

func (s *settlements) Nack(_ uint64, _, requeue bool) error {
	s.done += map[bool]string{true: "back", false: "drop"}[requeue]
	return nil
}

func TestPlainConsumerSettles(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int // 0: nobody listens
		want   string
	}{
		{"done", 200, "ack"},
		{"refused by the service", 400, "drop"},
		{"error", 500, "back"},
		{"service away", 0, "back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(test.status)
			}))
			defer service.Close()
			if test.status == 0 {
				service.Close()
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			noted := &settlements{}
			cfg := plainConfig{serviceURL: service.URL}
			err := handle(t.Context(), cfg, client, slog.New(slog.DiscardHandler), amqp.Delivery{Acknowledger: noted})
			if err != nil || noted.done != test.want {
				t.Errorf("settled with %q, %v; want %q", noted.done, err, test.want)
			}
		})
	}
}

func TestPlainConfigTravels(t *testing.T) {
	want := plainConfigFrom(func(name string) string { return "value of " + name })
	environment := want.environment()
	if got := plainConfigFrom(func(name string) string { return environment[name] }); got != want {
		t.Errorf("%+v arrives as %+v", want, got)
	}
}
