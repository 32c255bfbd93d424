package e2e

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// publishOne publishes a message as it stands.
func (s *stand) publishOne(p amqp.Publishing) {
	s.t.Helper()
	s.must(s.client.PublishTo(s.ctx, s.queue, p))
}

// Catches: a secret of FORWARD_HEADERS in the log, the status, the metrics, a dead letter or the words about a wrong setting; a header of a message
// that is not the message's.
func TestOwnHeaders(t *testing.T) {
	t.Parallel()
	const token = "s3cret-t0ken"
	s := newStand(t, func(r testkit.Received) testkit.Action {
		switch r.Key {
		case "refused":
			return testkit.Action{Status: http.StatusBadRequest}
		case "broken":
			return testkit.Action{Close: true}
		}
		return testkit.Action{}
	})
	var health lastHeader
	s.service.Other(health.keep)
	file := filepath.Join(t.TempDir(), "headers")
	writeFile(t, file, "Authorization: Bearer "+token+"\nX-Tenant: {header:tenant}\r\nX-From: {queue}/{routing_key}\n")
	settings := env{"FORWARD_HEADERS_FILE": file, "FORWARD_HEALTH_PATH": "/healthz", "FORWARD_ON_UNKNOWN": "deadletter"}
	r := s.start(settings)
	r.waitConsuming()
	if got := health.get("Authorization"); got != "Bearer "+token {
		t.Errorf("the health check has Authorization %q", got)
	}
	good := message("good")
	good.Headers = amqp.Table{"tenant": "Zürich"}
	s.publishOne(good)
	s.publish("refused", "broken")
	letters := s.letters(2)
	s.answered("good")
	for name, want := range map[string]string{"Authorization": "Bearer " + token, "X-Tenant": "Z%C3%BCrich", "X-From": s.queue + "/" + s.queue} {
		if got := s.posts("good", 1)[0].Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, there := s.posts("refused", 1)[0].Header["X-Tenant"]; there {
		t.Errorf("X-Tenant of a message without one: %q", got)
	}
	for _, l := range letters {
		for name, value := range l.Headers {
			if text, ok := value.(string); ok && strings.Contains(text, token) {
				t.Errorf("the dead letter of %s has it in %s", l.MessageId, name)
			}
		}
	}
	s.emptied()
	s.service.Stop()
	s.publish("late")
	r.waitMissing("service")
	r.keepsSecret(token)

	writeFile(t, file, "Authorization: Bearer "+token+"\nBearer "+token+"\n")
	wrong := s.start(settings)
	wrong.exits(2)
	if text := wrong.Logs.Text(); strings.Contains(text, token) || !strings.Contains(text, "FORWARD_HEADERS") || !strings.Contains(text, "line 2") {
		t.Errorf("it says:\n%s", text)
	}
}

// Catches: a placeholder that is not escaped, or filled with another message's; a request for a message that has nothing for the path.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.start(env{
		"FORWARD_URL":             s.service.URL + "/{queue}/{type}/{header:tenant}?key={routing_key}&id={id}&none={header:none}",
		"FORWARD_IDEMPOTENCY_KEY": "quoted",
	})
	full := message(`a"b/1`)
	full.Type, full.Headers = "order created", amqp.Table{"tenant": "ü/..x"}
	dots := message("dots")
	dots.Type, dots.Headers = "t", amqp.Table{"tenant": ".."}
	hidden := message("hidden") // some servers decode a slash before they resolve dots
	hidden.Type, hidden.Headers = "t", amqp.Table{"tenant": "a/../../admin"}
	s.must(s.client.PublishTo(s.ctx, s.queue, full, message("bare"), dots, hidden))
	letters := s.letters(3)
	for _, l := range letters {
		s.lettersOf([]amqp.Delivery{l}, l.MessageId, "rejected")
		if text, _ := l.Headers["x-rabbitonce-error"].(string); !strings.Contains(text, "FORWARD_URL") {
			t.Errorf("dead letter of %s: %v", l.MessageId, l.Headers)
		}
	}
	s.settled()
	all := s.service.Journal.Entries()
	if len(all) != 1 {
		t.Fatalf("%d POSTs, want 1", len(all))
	}
	if got, want := all[0].URI, "/"+s.queue+"/order%20created/%C3%BC%2F..x?key="+s.queue+"&id=a%22b%2F1&none="; got != want {
		t.Errorf("asked for %s\nwant      %s", got, want)
	}
	if got, want := all[0].Key, `"a\"b/1"`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

// Catches: a value of an envelope that does not arrive byte for byte, or as another type; a message without that value sent all the same; a dead
// letter that holds the value only.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	massTransit := `{"messageId":"m","messageType":["urn:message:Shop:Order"],` + "\n" + `  "message" : {"id": 1.0, "text":"\u00e9 ü " } ,"host":{}}`
	celery := `[["order-1", 9007199254740993], {"retry": false}, {"callbacks": null, "chain": null}]`
	for name, c := range map[string]struct{ pointer, envelope, envelopeType, setting, want, wantType string }{
		"MassTransit":  {"/message", massTransit, "application/vnd.masstransit+json", "", `{"id": 1.0, "text":"\u00e9 ü " }`, "application/json"},
		"another type": {"/message", massTransit, "application/vnd.masstransit+json", "application/x-order", `{"id": 1.0, "text":"\u00e9 ü " }`, "application/x-order"},
		"one argument": {"/0/0", celery, "application/json", "", `"order-1"`, "application/json"},
		"Celery":       {"/0", celery, "application/json", "", `["order-1", 9007199254740993]`, "application/json; charset=utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, nil)
			s.service.KeepBodies()
			s.start(env{"FORWARD_BODY": "json:" + c.pointer, "FORWARD_CONTENT_TYPE": c.setting})
			p := amqp.Publishing{MessageId: "a", ContentType: c.envelopeType, Body: []byte(c.envelope)}
			if strings.Contains(c.wantType, "charset") {
				p.ContentEncoding = "utf-8" // as Celery sets it
			}
			s.publishOne(p)
			s.publish("without")
			s.answered("a")
			s.letter("without", "rejected") // whole
			s.settled()
			e := s.posts("a", 1)[0]
			if string(e.Body) != c.want || e.Header.Get("Content-Type") != c.wantType || e.Header.Get("Content-Length") != strconv.Itoa(len(c.want)) {
				t.Errorf("%q with %v,\nwant %q as %s", e.Body, e.Header, c.want, c.wantType)
			}
			s.posts("without", 0)
		})
	}
}

// Catches: a content type that is not the message's, a trace that ends here, headers that grow beyond what servers take.
func TestHeadersOfTheMessage(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	r := s.start(env{"FORWARD_CONTENT_TYPE": "text/xml"})
	const trace, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1"
	typed, untyped, many := message("typed"), message("untyped"), message("many")
	untyped.ContentType = ""
	untyped.Headers = amqp.Table{"traceparent": trace, "tracestate": state}
	many.Headers = amqp.Table{}
	for i := range 200 {
		many.Headers["x-"+strconv.Itoa(i)] = strings.Repeat("v", 100)
	}
	s.must(s.client.PublishTo(s.ctx, s.queue, typed, untyped, many))
	s.answered("typed", "untyped", "many")
	for id, want := range map[string]map[string]string{
		"typed":   {"Content-Type": "application/json", "Traceparent": ""},
		"untyped": {"Content-Type": "text/xml", "Traceparent": trace, "Tracestate": state},
	} {
		for name, value := range want {
			if got := s.posts(id, 1)[0].Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", id, name, got, value)
			}
		}
	}
	size, count := 0, 0
	for name, values := range s.posts("many", 1)[0].Header {
		if !strings.HasPrefix(name, "Rabbitmq-Header") {
			continue
		}
		count++
		size += len(name) + len(strings.Join(values, ""))
	}
	if size > 6<<10 || size < 4<<10 || count > 49 {
		t.Errorf("%d headers of the publisher's with %d bytes", count, size)
	}
	line, err := r.Logs.Wait(s.ctx, func(l testkit.LogLine) bool {
		return l.Fields["id"] == "many" && strings.HasPrefix(l.Message(), "headers of the message did not fit")
	})
	s.must(err)
	if n, _ := line.Fields["left_out"].(float64); n < 100 {
		t.Errorf("log: %s", line.Text)
	}
	s.settled()
}

// lastHeader keeps the headers of the last request.
type lastHeader struct{ last atomic.Pointer[http.Header] }

func (a *lastHeader) keep(_ http.ResponseWriter, r *http.Request) {
	h := r.Header.Clone()
	a.last.Store(&h)
}

func (a *lastHeader) get(name string) string {
	if h := a.last.Load(); h != nil {
		return h.Get(name)
	}
	return ""
}
