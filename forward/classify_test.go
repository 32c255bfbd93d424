package forward

import (
	"net/http"
	"testing"
	"time"
)

// wantOutcome is section 5 of the contract, written another way than the code.
func wantOutcome(status int) Outcome {
	switch {
	case status < 200:
		return Unknown
	case status < 300:
		return Done
	case status < 400:
		return Fail
	}
	switch status {
	case 409, 425, 429, 503:
		return Defer
	case 401, 403, 404, 405, 408:
		return Fail
	case 502, 504:
		return Unknown
	}
	if status < 500 {
		return Reject
	}
	return Fail
}

func TestClassifyEveryStatus(t *testing.T) {
	for status := 100; status <= 599; status++ {
		got, wait := Classify(status, http.Header{}, time.Now())
		if want := wantOutcome(status); got != want || wait != 0 {
			t.Errorf("Classify(%d) = %s, %s, want %s, 0s", status, got, wait, want)
		}
	}
	for _, status := range []int{0, 99, 600, 999} {
		if got, _ := Classify(status, http.Header{}, time.Now()); got != Unknown {
			t.Errorf("Classify(%d) = %s, want unknown", status, got)
		}
	}
}

func TestClassifyDeliveryAction(t *testing.T) {
	cases := []struct {
		status int
		action string
		want   Outcome
	}{
		{500, "done", Done},
		{200, "defer", Defer},
		{200, "fail", Fail},
		{200, "reject", Reject},
		{502, "reject", Reject},
		{504, " Done\t", Done},
		{200, "REJECT", Reject},
		{200, "unknown", Done},
		{200, "unreachable", Done},
		{500, "", Fail},
		{400, "do it", Reject},
		{101, "done", Unknown},
		{700, "done", Done},
	}
	for _, c := range cases {
		h := http.Header{"Delivery-Action": {c.action}}
		if got, _ := Classify(c.status, h, time.Now()); got != c.want {
			t.Errorf("Classify(%d, %q) = %s, want %s", c.status, c.action, got, c.want)
		}
	}
}

func TestClassifyRetryAfter(t *testing.T) {
	now := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"7":                                7 * time.Second,
		" 7 ":                              7 * time.Second,
		"3600":                             time.Hour,
		"3601":                             time.Hour,
		"4294967295":                       time.Hour,
		"99999999999999999999999999":       time.Hour,
		"-5":                               0,
		"1.5":                              0,
		"soon":                             0,
		"Sat, 01 Mar 2025 12:00:30 GMT":    30 * time.Second,
		"Saturday, 01-Mar-25 12:00:30 GMT": 30 * time.Second,
		"Sat, 01 Mar 2025 11:59:30 GMT":    0,
		"Sat, 01 Mar 2125 12:00:30 GMT":    time.Hour,
	}
	for value, want := range cases {
		h := http.Header{"Retry-After": {value}}
		if outcome, got := Classify(503, h, now); got != want || outcome != Defer {
			t.Errorf("Retry-After %q = %s, %s, want defer, %s", value, outcome, got, want)
		}
	}
}

func TestClassifyRetryAfterOnlyWithDefer(t *testing.T) {
	h := http.Header{"Retry-After": {"7"}}
	for _, status := range []int{200, 302, 400, 500, 502} {
		if _, wait := Classify(status, h, time.Now()); wait != 0 {
			t.Errorf("Classify(%d) waits %s, want 0s", status, wait)
		}
	}
	h.Set("Delivery-Action", "defer")
	if _, wait := Classify(200, h, time.Now()); wait != 7*time.Second {
		t.Errorf("with Delivery-Action: defer waits %s, want 7s", wait)
	}
}
