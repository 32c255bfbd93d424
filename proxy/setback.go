package proxy

import (
	"fmt"
	"net/http"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// setback is how a message did not end done.
type setback struct {
	outcome forward.Outcome // of its request; meaningless with a reason
	status  int             // of the answer; 0 without one
	reason  dedup.Reason    // missing ID or conflict: there was no request
	began   time.Time       // of its request
}

// sent tells whether there was a request: one that could not be made from the message is rejected without a status.
func (s setback) sent() bool {
	return s.reason == 0 && (s.outcome != forward.Reject || s.status != 0)
}

// cutOff tells whether the request ended without an answer.
func (s setback) cutOff() bool { return s.outcome == forward.Unknown && s.status == 0 && s.reason == 0 }

func (s setback) String() string {
	switch {
	case s.reason != 0:
		return s.reason.String()
	case s.status != 0:
		return fmt.Sprintf("%s (status %d)", s.outcome, s.status)
	}
	return s.outcome.String()
}

// advice names the likely cause of setbacks that follow one another, and the setting to look at.
func (s setback) advice() string {
	switch {
	case s.reason == dedup.ReasonMissingID:
		return "messages have no ID where DEDUP_ID_FROM looks: name the place that they have it in"
	case s.reason == dedup.ReasonConflict:
		return "messages with one ID have different bodies: DEDUP_ID_FROM names something that is not unique to a message"
	case !s.sent():
		return "no request can be made of the messages: check FORWARD_BODY and the placeholders of FORWARD_URL, and see x-rabbitonce-error in the dead letters"
	}
	switch s.status {
	case 0:
		return "the service gives no whole answer: look at its log, and set FORWARD_TIMEOUT longer than its own limit"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "the service does not know the path or does not take POST there: check FORWARD_URL"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return "the service wants credentials: put them into FORWARD_URL or FORWARD_HEADERS"
	case http.StatusConflict:
		return "services often answer 409 for work that was done before: if yours does, set FORWARD_STATUS_DONE=200-299,409"
	case http.StatusUnsupportedMediaType:
		return "the service does not take this content type: see FORWARD_CONTENT_TYPE"
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		return "the request is too large for the service or a server before it: raise its limit"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "the service redirects, which is not followed: set FORWARD_URL to where it redirects to"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusTooEarly:
		return "the service is overloaded or not ready: lower FORWARD_CONCURRENCY or set FORWARD_RATE"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return "a proxy before the service gets no answer from it: look at the service, and at the proxy's own timeout"
	}
	if s.outcome == forward.Reject {
		return "the service refuses the messages: look at its log; is FORWARD_URL the right service, and should FORWARD_BODY unwrap an envelope?"
	}
	return "the service fails: look at its log"
}
