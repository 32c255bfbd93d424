package forward

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A service that sends back what it got, in an answer that cannot be read, has it quoted in an error.
func TestErrorsHideWhatTheServiceEchoes(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) string{
		"status":  func(r *http.Request) string { return "HTTP/1.1 " + r.Header.Get("Authorization") + "\r\n\r\n" },
		"version": func(r *http.Request) string { return r.RequestURI + "\r\n\r\n" },
		"header":  func(r *http.Request) string { return "HTTP/1.1 200 OK\r\n" + r.Header.Get("X-Token") + "\r\n\r\n" },
		"length": func(r *http.Request) string {
			return "HTTP/1.1 200 OK\r\nContent-Length: " + r.Header.Get("X-Token") + "\r\n\r\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, "tcp", "127.0.0.1:0", func(c *rawConn) {
				if !c.request() {
					return
				}
				c.server.mu.Lock()
				request := c.server.requests[len(c.server.requests)-1]
				c.server.mu.Unlock()
				c.send(answer(request))
			})
			client := newClient(t, Config{
				URL: server.url() + "/hook?token=hunter2", HealthPath: "/ready?key=hunter2", OnUnknown: UnknownLookup, LookupURL: server.url() + "/of/{id}?token=hunter2",
				Headers: "Authorization: Bearer hunter2\nX-Token: hunter2 {id}",
			})
			result := client.Post(t.Context(), &Request{IdempotencyKey: "k"})
			_, lookup := client.Lookup(t.Context(), "k")
			text := fmt.Sprint(result.Err, "\n", client.Probe(t.Context()), "\n", lookup)
			if strings.Contains(text, "hunter2") || strings.Count(text, "\n") != 2 || result.Outcome != Unknown {
				t.Errorf("%s, errors:\n%s", result.Outcome, text)
			}
		})
	}
}

// The probe of an https service shakes hands: a service that is not trusted is not up.
func TestProbeShakesHands(t *testing.T) {
	server := newRawServer(t, "tcp", "127.0.0.1:0", func(*rawConn) {})
	client := newTestClient(t, strings.Replace(server.url(), "http://", "https://", 1))
	if err := client.Probe(t.Context()); err == nil {
		t.Error("a server without TLS is up for https")
	}
}
