package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseBrokerURL(t *testing.T) {
	tests := map[string][]endpoint{
		"amqp://u:p@h":                 {{"h", 5672, false, "/", "u", "p"}},
		"amqp://u:p@h/":                {{"h", 5672, false, "/", "u", "p"}},
		"amqps://u:p@h/shop":           {{"h", 5671, true, "shop", "u", "p"}},
		"amqp://u:p@a:1,b,[::1]:3/%2F": {{"a", 1, false, "/", "u", "p"}, {"b", 5672, false, "/", "u", "p"}, {"::1", 3, false, "/", "u", "p"}},
		"amqp://h/a%2Fb":               {{"h", 5672, false, "a/b", "", ""}},
		"amqp://u:p%23%2F%40@h":        {{"h", 5672, false, "/", "u", "p#/@"}},
		"amqp://u:p@ss@h":              {{"h", 5672, false, "/", "u", "p@ss"}},
		"amqp://":                      {{"localhost", 5672, false, "/", "", ""}},
		"amqps://h?verify=verify_peer": {{"h", 5671, true, "/", "", ""}},
		"amqp://u@h//a/b":              {{"h", 5672, false, "/a/b", "u", ""}},
		"amqp://h:65536":               nil,
		"":                             nil,
		"h:5672":                       nil,
		"http://h":                     nil,
		"amqp://u:p#s@h":               nil,
		"amqp://u:p/s@h":               nil,
		"amqp://u:p?s@h":               nil,
		"amqp://u:47/p@h/":             nil,
		"amqp://u:p://s@h":             nil,
		"amqp://u:p%s@h":               nil,
		"amqp://u:p@a,u:p@b":           nil, // the user once, before the first host
		"amqp://h:port":                nil,
		"amqp://u:p s@h":               nil,
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			got, err := parseBrokerURL(raw)
			if (err != nil) != (want == nil) {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(endpoint{})); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}
