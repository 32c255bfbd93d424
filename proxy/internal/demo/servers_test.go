package main

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckBrokerURL(t *testing.T) {
	for _, test := range []struct {
		url  string
		okay bool
	}{
		{"amqp://user:secret@broker:5673/shop", true},
		{"amqp://broker", true},
		{"amqps://user:secret@broker", false},
		{"amqp://user:secret@one,two", false},
		{"amqp://user:secret@one:5672,two:5672", false},
		{"http://user:secret@broker", false},
		{"amqp://user:se cret@broker", false},
	} {
		err := checkBrokerURL(test.url)
		if (err == nil) != test.okay {
			t.Errorf("%s: %v", test.url, err)
		}
		if err != nil && (!errors.As(err, new(usageError)) || strings.Contains(err.Error(), "cret@")) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
}

func TestBrokerAddressAndVia(t *testing.T) {
	for _, test := range []struct{ url, address, via string }{
		{"amqp://u:p%40@broker:5673/shop?heartbeat=5", "broker:5673", "amqp://u:p%40@127.0.0.1:9/shop?heartbeat=5"},
		{"amqp://broker", "broker:5672", "amqp://127.0.0.1:9"},
		{"amqp://[::1]/", "[::1]:5672", "amqp://127.0.0.1:9/"},
	} {
		address, err := brokerAddress(test.url)
		if err != nil || address != test.address {
			t.Errorf("address of %s: %q, %v", test.url, address, err)
		}
		through, err := via(test.url, "127.0.0.1:9")
		if err != nil || through != test.via {
			t.Errorf("%s via: %q, %v", test.url, through, err)
		}
	}
}

func TestRedisURLMistake(t *testing.T) {
	err := pingRedis(t.Context(), "redis://user:secret@:port")
	if !errors.As(err, new(usageError)) || strings.Contains(err.Error(), "secret") {
		t.Errorf("err = %v", err)
	}
}
