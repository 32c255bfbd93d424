package forward

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ownHeader is a header that the operator adds to each request, with FORWARD_HEADERS.
type ownHeader struct {
	name  string
	value phrase
}

// errHeaderLine repeats nothing of the line, which may hold a secret.
var errHeaderLine = errors.New(`write each header on a line of its own as "Name: value"`)

// parseOwnHeaders reads FORWARD_HEADERS: lines of "Name: value". Errors name the header or the number of the line, never a
// value.
func parseOwnHeaders(text, queue string) ([]ownHeader, error) {
	var headers []ownHeader
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !isFieldName(name) {
			return nil, fmt.Errorf("FORWARD_HEADERS has a line %d that is no header: %w", i+1, errHeaderLine)
		}
		lower := strings.ToLower(name)
		if why := reserved(lower); why != "" && !closesConnection(name, value) {
			return nil, fmt.Errorf("FORWARD_HEADERS sets %s, %s", name, why)
		}
		if seen[lower] {
			return nil, fmt.Errorf("FORWARD_HEADERS sets %s twice: keep one line", name)
		}
		seen[lower] = true
		p, err := parsePhrase(value, queue, encodeValue, refuseWhatLooksLikeOne)
		if err != nil {
			return nil, fmt.Errorf("FORWARD_HEADERS: %s %w", name, err)
		}
		for _, piece := range p {
			if !isVisible(piece.literal) {
				return nil, fmt.Errorf("FORWARD_HEADERS sets %s to a value with characters that HTTP cannot carry: percent-encode them", name)
			}
		}
		if fixed, ok := p.fixed(); lower == "host" && (!ok || !isHost(fixed)) {
			return nil, errors.New("FORWARD_HEADERS sets Host to something that is no host name with or without a port, the same for all messages")
		}
		headers = append(headers, ownHeader{name: http.CanonicalHeaderKey(name), value: p})
	}
	return headers, nil
}

// isHost tells whether s can be the value of Host.
func isHost(s string) bool {
	u, err := url.Parse("http://" + s + "/")
	return err == nil && s != "" && u.Host == s
}

// closesConnection says whether a header asks for a connection to each request: the one thing about connections that is
// the operator's to say. A service that keeps connections may close one right behind an answer, as many do while they are
// reloaded, and what was sent on it meanwhile is unknown.
func closesConnection(name, value string) bool {
	return strings.EqualFold(name, "Connection") && strings.EqualFold(value, "close")
}

// reserved says why a header cannot be set; "" allows it.
func reserved(lower string) string {
	switch lower {
	case "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "proxy-connection":
		return "which belongs to the connection and not to the message"
	case "content-type":
		return "which is the message's own: see FORWARD_CONTENT_TYPE for messages without one"
	case "content-encoding":
		return "which is the message's own"
	case "traceparent", "tracestate", "baggage":
		return "which passes from the message"
	case "idempotency-key":
		return "which is the message's ID: see DEDUP_ID_FROM"
	}
	if strings.HasPrefix(lower, "delivery-") || strings.HasPrefix(lower, "rabbitmq-") {
		return "and headers that begin so tell of the message"
	}
	return ""
}

// isFieldName says whether s can be the name of a header (RFC 9110, 5.6.2).
func isFieldName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isVisible says whether all of s is visible ASCII, spaces and tabs.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] != '\t' && (s[i] < ' ' || s[i] >= 0x7f) {
			return false
		}
	}
	return true
}
