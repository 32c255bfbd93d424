package services

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// testNames: front servers drop headers whose names have underscores, CGI and its heirs take - and _ for the same, and
// all limit the size. What a publisher sends arrives whole all the same.
func testNames(t *testing.T, k kind, h *host) {
	s := newStand(t, h, env{"FORWARD_HEADERS": "X_Own_Underscore: lost\nX-Own: kept"})
	odd := amqp.Table{
		"x_tenant": "underscore", "x.tenant": "dot", "X-Tenant": "hyphen", "x tenant": "space", "x-tenänt": "umlaut",
		"proxy": "http://127.0.0.1:1", "content-length": "12", "transfer-encoding": "chunked", "host": "elsewhere",
		"twice": "lower", "Twice": "upper", "value": "Zürich 100%\r\nX-Split: yes", "plain": "a",
	}
	many := amqp.Table{}
	for i := range 90 {
		many[fmt.Sprintf("many-%d", i)] = strings.Repeat("v", 30)
	}
	oddID := s.queue + ".Zürich 100%"
	s.publish(
		message{id: s.queue + ".odd", body: "{}", headers: odd},
		message{id: s.queue + ".many", body: "{}", headers: many},
	)
	s.publish(message{id: oddID, body: "{}"})
	s.arrived(s.queue+".odd", odd)
	s.arrived(s.queue+".many", many)
	s.ownHeaders(s.queue+".odd", k.dropsUnderscores)

	// The journal has this key as the service got it.
	encoded := s.queue + ".Z%C3%BCrich 100%25"
	s.published[encoded] = s.published[oddID]
	delete(s.published, oddID)
	s.settled(nil)
}

// arrived wants the service to have got all of a message's headers, in whichever of the two ways.
func (s *stand) arrived(id string, headers amqp.Table) {
	s.t.Helper()
	s.done(message{id: id})
	got := map[string]string{}
	request := s.story(id).requests[0]
	for name, value := range request.Headers {
		if name, ok := strings.CutPrefix(name, "rabbitmq-header-"); ok {
			got[name] = s.decoded(value)
		}
	}
	if text, ok := request.Headers["rabbitmq-headers"]; ok {
		var rest map[string]string
		if err := json.Unmarshal([]byte(s.decoded(text)), &rest); err != nil {
			s.t.Errorf("%s: RabbitMQ-Headers: %v: %s", id, err, text)
		}
		for name, value := range rest {
			got[name] = value
		}
	}
	want := map[string]string{}
	for name, value := range headers {
		if _, twin := headers[strings.ToLower(name)]; !twin || name == strings.ToLower(name) {
			name = canonical(name)
		}
		want[name] = value.(string)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s: headers (-published +arrived):\n%s", id, diff)
	}
}

// canonical is how the journal names a header that has a header of HTTP to itself: letters, digits and hyphens lose
// their case on the way.
func canonical(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return strings.ToLower(name)
	}
	return name
}

// decoded undoes the percent-encoding; + stays +.
func (s *stand) decoded(text string) string {
	s.t.Helper()
	plain, err := url.PathUnescape(text)
	s.must(err)
	return plain
}

// ownHeaders looks at a header that the operator named: the control that shows which servers would lose the others too.
func (s *stand) ownHeaders(id string, dropped bool) {
	s.t.Helper()
	headers := s.story(id).requests[0].Headers
	if headers["x-own"] != "kept" {
		s.t.Errorf("X-Own did not arrive: %v", headers)
	}
	own, arrived := headers["x-own-underscore"]
	if !arrived {
		own, arrived = headers["x_own_underscore"]
	}
	if dropped && arrived {
		s.t.Errorf("X_Own_Underscore arrived as %q: this server was thought to drop it", own)
	}
	s.t.Logf("a header whose name has an underscore arrives: %t", arrived)
}
