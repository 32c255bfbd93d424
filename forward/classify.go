package forward

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a service can ask for with Retry-After, so that one
// wrong header cannot put a message off for days.
const maxRetryAfter = time.Hour

// actionHeader is the response header by which a service decides itself.
const actionHeader = "Delivery-Action"

// Classify says what an answer means by the default table, and how long the
// service asks to wait. The wait is 0 when the service names none or when the
// outcome is not Defer. It is pure: now is only used for a date in Retry-After.
func Classify(status int, h http.Header, now time.Time) (Outcome, time.Duration) {
	table := (&Config{}).outcomes()
	return classify(&table, status, h, now)
}

func classify(table *statusTable, status int, h http.Header, now time.Time) (Outcome, time.Duration) {
	outcome := table.outcome(status)
	// Statuses below 200 are no answers to a request (RFC 9110, 15.2): 101 hands
	// the connection to another protocol. Nothing they carry can be trusted.
	if status >= 200 {
		if chosen, ok := action(h); ok {
			outcome = chosen
		}
	}
	if outcome != Defer {
		return outcome, 0
	}
	return outcome, retryAfter(h, now)
}

// action reads Delivery-Action; any value but the four is as good as none.
func action(h http.Header) (Outcome, bool) {
	value := h.Get(actionHeader)
	if value == "" {
		return Unknown, false
	}
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "done":
		return Done, true
	case "defer":
		return Defer, true
	case "fail":
		return Fail, true
	case "reject":
		return Reject, true
	default:
		return Unknown, false
	}
}

// retryAfter reads Retry-After, seconds or a date (RFC 9110, 10.2.3), clamped to
// 0..maxRetryAfter. A value that is neither counts as none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if isDigits(value) {
		seconds, err := strconv.ParseUint(value, 10, 32)
		if err != nil { // digits only, so the number is too large
			return maxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
