package forward

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewTarget(t *testing.T) {
	cases := []struct {
		raw, queue string
		uri, host  string
		addresses  []string
		text       string
	}{
		{"http://localhost:8080/hook", "q", "/hook", "localhost:8080", []string{"127.0.0.1:8080", "[::1]:8080"}, "http://localhost:8080/hook"},
		{"http://app/", "q", "/", "app", []string{"app:80"}, "http://app/"},
		{"http://app", "q", "/", "app", []string{"app:80"}, "http://app"},
		{"https://app/", "q", "/", "app", []string{"app:443"}, "https://app/"},
		{"http://[::1]:81/", "q", "/", "[::1]:81", []string{"[::1]:81"}, "http://[::1]:81/"},
		{"http://u:p@app/a?k=s", "q", "/a?k=s", "app", []string{"app:80"}, "http://app/a"},
		{"http://app/q/{queue}", "orders", "/q/orders", "app", []string{"app:80"}, "http://app/q/orders"},
		{"http://app/{queue}/x", "a/b?c#d é%", "/a%2Fb%3Fc%23d%20%C3%A9%25/x", "app", []string{"app:80"}, "http://app/a%2Fb%3Fc%23d%20%C3%A9%25/x"},
		{"http://app/p?q={queue}", "a&b=c d", "/p?q=a%26b%3Dc+d", "app", []string{"app:80"}, "http://app/p"},
		{"http://app?q={queue}", "a", "/?q=a", "app", []string{"app:80"}, "http://app"},
		{"http://app/{queue}", "...", "/...", "app", []string{"app:80"}, "http://app/..."},
		{"unix:/run/a.sock:/x/{queue}", "q", "/x/q", "localhost", []string{"/run/a.sock"}, "unix:/run/a.sock:/x/q"},
		{"unix:/run/a.sock", "q", "/", "localhost", []string{"/run/a.sock"}, "unix:/run/a.sock:/"},
		{"unix:///run/a.sock:/x", "q", "/x", "localhost", []string{"/run/a.sock"}, "unix:/run/a.sock:/x"},
	}
	for _, c := range cases {
		target, err := newTarget("FORWARD_URL", c.raw, c.queue)
		if err != nil {
			t.Errorf("%s: %v", c.raw, err)
			continue
		}
		if target.url.User != nil {
			t.Errorf("%s: the request's URL holds credentials", c.raw)
		}
		if got := target.url.RequestURI(); got != c.uri || target.url.Host != c.host || target.String() != c.text {
			t.Errorf("%s = %s for %s, shown as %s", c.raw, got, target.url.Host, target)
		}
		if diff := cmp.Diff(c.addresses, target.addresses); diff != "" {
			t.Errorf("%s addresses (-want +got):\n%s", c.raw, diff)
		}
	}
}

func TestNewTargetRefuses(t *testing.T) {
	cases := []struct {
		raw, queue string
		want       error
	}{
		{"", "q", errURLMissing},
		{"localhost:8080/hook", "q", errURLSyntax},
		{"/hook", "q", errURLSyntax},
		{"ftp://app/", "q", errURLSyntax},
		{"http:///hook", "q", errURLSyntax},
		{"http://app/%zz", "q", errURLSyntax},
		{"http://me:s3/cret@app/", "q", errURLSyntax},
		{"http://me:s3cret@app/?a b", "q", errURLSyntax},
		{"http://app:0/", "q", errURLPort},
		{"http://app:99999/", "q", errURLPort},
		{"http://app/#x", "q", errURLFragment},
		{"http://{queue}/", "q", errURLPlace},
		{"http://app/{queue", "q", errURLBraces},
		{"http://app/queue}", "q", errURLBraces},
		{"http://app/{queue}", ".", errURLDots},
		{"http://app/{queue}/x", "..", errURLDots},
		{"http://app/.{queue}", ".", errURLDots},
		{"http://app/a/%2e%2e/b", "q", errURLDots},
		{"unix:run/a.sock:/x", "q", errURLSocket},
		{"unix:/" + strings.Repeat("a", 107), "q", errURLSocket},
		{"unix:/run/{queue}.sock:/x", "q", errURLPlace},
		{"unix:/run/a.sock:x", "q", errURLSyntax},
	}
	for _, c := range cases {
		_, err := newTarget("FORWARD_URL", c.raw, c.queue)
		if !errors.Is(err, c.want) {
			t.Errorf("%s with queue %q: %v, want %v", c.raw, c.queue, err, c.want)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "FORWARD_URL ") || strings.Contains(err.Error(), "cret")) {
			t.Errorf("%q has to start with the variable and hold no secret", err)
		}
	}
}

func TestNewTargetUnknownPlaceholder(t *testing.T) {
	for _, place := range []string{"{routing-key}", "{Type}", "{ID}", "{header:}", "{header}", "{Queue}", "{}"} {
		for _, raw := range []string{"http://app/{queue}/" + place, "http://app/?a=" + place, "unix:/s.sock:/" + place} {
			_, err := newTarget("FORWARD_URL", raw, "q")
			if err == nil || !strings.Contains(err.Error(), "placeholder that does not exist") || !strings.HasPrefix(err.Error(), "FORWARD_URL ") {
				t.Errorf("%s: %v, want it refused", raw, err)
			}
			if shown, inQuery := strings.HasSuffix(fmt.Sprint(err), "found "+place), strings.Contains(raw, "?"); shown == inQuery { // a query may hold a secret
				t.Errorf("%s: %v names it: %t", raw, err, shown)
			}
		}
	}
}

// FuzzNewTarget: a queue's name stays one segment, and nothing of the URL shows.
func FuzzNewTarget(f *testing.F) {
	for _, queue := range []string{"orders", "..", "a/b", "a?b", "%2e", "é", "{queue}", "\r\n", ""} {
		f.Add(queue)
	}
	f.Fuzz(func(t *testing.T, queue string) {
		target, err := newTarget("FORWARD_URL", "http://app/a/{queue}/b?q={queue}", queue)
		if err != nil {
			if queue != "." && queue != ".." {
				t.Errorf("queue %q: %v", queue, err)
			}
			return
		}
		path, query, _ := strings.Cut(target.url.RequestURI(), "?")
		if strings.Count(path, "/") != 3 || strings.ContainsAny(query, "&#") || target.url.Query().Get("q") != queue {
			t.Errorf("queue %q became %s", queue, target.url.RequestURI())
		}
	})
}

// Host is sent as HTTP has it, whatever the URL's host looks like.
func TestHostHeader(t *testing.T) {
	for raw, want := range map[string]string{
		"http://service:8080/":             "service:8080",
		"http://b\u00fccher.example/":      "xn--bcher-kva.example",
		"http://[fe80::1%25eth0]:8080/":    "[fe80::1]:8080",
		"http://[::1]/":                    "[::1]",
		"unix:/run/service.sock:/messages": "localhost",
	} {
		client := newTestClient(t, raw)
		head, _ := client.appendHead(nil, "/", &Request{}, time.Time{})
		if !strings.Contains(string(head), "\r\nHost: "+want+"\r\n") {
			t.Errorf("%s: want Host %s in\n%s", raw, want, head)
		}
	}
}
