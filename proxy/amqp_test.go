package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestParseBrokerURL(t *testing.T) {
	type host struct {
		Scheme, Host, User, Password, Vhost string
		Port                                int
	}
	tests := map[string][]host{
		"amqp://u:p@h":                 {{"amqp", "h", "u", "p", "/", 5672}},
		"amqp://u:p@h/":                {{"amqp", "h", "u", "p", "/", 5672}},
		"amqps://u:p@h/shop":           {{"amqps", "h", "u", "p", "shop", 5671}},
		"amqp://u:p@a:1,b,[::1]:3/%2F": {{"amqp", "a", "u", "p", "/", 1}, {"amqp", "b", "u", "p", "/", 5672}, {"amqp", "::1", "u", "p", "/", 3}},
		"amqp://h/a%2Fb":               {{"amqp", "h", "guest", "guest", "a/b", 5672}},
		"amqp://u:p%23%2F%40@h":        {{"amqp", "h", "u", "p#/@", "/", 5672}},
		"amqp://u:p@ss@h":              {{"amqp", "h", "u", "p@ss", "/", 5672}},
		"":                             nil,
		"h:5672":                       nil,
		"http://h":                     nil,
		"amqp://u:p#s@h":               nil,
		"amqp://u:p/s@h":               nil,
		"amqp://u:p?s@h":               nil,
		"amqp://u:47/p@h/":             nil,
		"amqp://u:p://s@h":             nil,
		"amqp://u:p%s@h":               nil,
		"amqp://h:port":                nil,
		"amqp://u:p s@h":               nil,
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			endpoints, err := parseBrokerURL(raw)
			if (err != nil) != (want == nil) {
				t.Fatalf("error is %v", err)
			}
			var got []host
			for _, e := range endpoints {
				got = append(got, host{e.Scheme, e.Host, e.Username, e.Password, e.Vhost, e.Port})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlainHeaders(t *testing.T) {
	got := plainHeaders(amqp.Table{
		"text": "x", "table": amqp.Table{"inner": amqp.Table{"n": int32(1)}}, "list": []any{amqp.Table{"a": nil}, amqp.Decimal{Scale: 2, Value: 1999}},
	})
	want := map[string]any{
		"text": "x", "table": map[string]any{"inner": map[string]any{"n": int32(1)}}, "list": []any{map[string]any{"a": nil}, "19.99"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestDecimalText(t *testing.T) {
	for want, d := range map[string]amqp.Decimal{
		"0": {}, "19.99": {Scale: 2, Value: 1999}, "-19.99": {Scale: 2, Value: -1999}, "0.05": {Scale: 2, Value: 5}, "-0.005": {Scale: 3, Value: -5},
		"7": {Value: 7}, "-2147483648": {Value: -2147483648},
	} {
		if got := decimalText(d); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
}
