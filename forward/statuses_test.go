package forward

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatusesDecode(t *testing.T) {
	for text, want := range map[string]Statuses{
		"200":           {{200, 200}},
		" 200-299, 409": {{200, 299}, {409, 409}},
		"599-599":       {{599, 599}},
	} {
		var got Statuses
		if err := got.EnvDecode(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(statusSpan{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"199", "600", "300-200", "2xx", "200,", ",", "200-", "-200", "200-299-300", "1e2"} {
		if err := new(Statuses).EnvDecode(text); err == nil || !strings.Contains(err.Error(), "200-299,409") {
			t.Errorf("%q: %v, want it refused with an example", text, err)
		}
	}
}

// A list replaces the defaults of its outcome alone, and what no list has is never done.
func TestOutcomesByLists(t *testing.T) {
	cases := map[string]struct {
		config Config
		want   map[int]Outcome
	}{
		"defaults":            {Config{}, map[int]Outcome{200: Done, 299: Done, 409: Defer, 404: Fail, 422: Reject, 500: Fail, 502: Unknown, 503: Defer, 304: Fail}},
		"409 is done":         {Config{StatusDone: Statuses{{200, 299}, {409, 409}}}, map[int]Outcome{200: Done, 409: Done, 429: Defer}},
		"only 200 is done":    {Config{StatusDone: Statuses{{200, 200}}}, map[int]Outcome{200: Done, 202: Unknown, 204: Unknown, 500: Fail}},
		"404 rejects":         {Config{StatusReject: Statuses{{400, 400}, {404, 404}}}, map[int]Outcome{400: Reject, 404: Reject, 422: Fail, 403: Fail}},
		"500 may have worked": {Config{StatusUnknown: Statuses{{500, 599}}}, map[int]Outcome{500: Unknown, 502: Unknown, 503: Unknown, 429: Defer}},
		"only 500 is unknown": {Config{StatusUnknown: Statuses{{500, 500}}}, map[int]Outcome{500: Unknown, 502: Unknown, 504: Unknown}},
		"502 has not worked":  {Config{StatusUnknown: Statuses{{504, 504}}, StatusFail: Statuses{{500, 502}}}, map[int]Outcome{502: Fail, 504: Unknown}},
		"423 waits":           {Config{StatusDefer: Statuses{{423, 423}}}, map[int]Outcome{423: Defer, 409: Fail, 503: Fail}},
		"all that fails":      {Config{StatusFail: Statuses{{300, 599}}}, map[int]Outcome{300: Fail, 400: Fail, 502: Fail, 200: Done}},
	}
	for name, c := range cases {
		table := c.config.outcomes()
		for status, want := range c.want {
			if got := table.outcome(status); got != want {
				t.Errorf("%s: %d is %s, want %s", name, status, got, want)
			}
		}
		for _, status := range []int{0, 100, 199, 600, 999} {
			if got := table.outcome(status); got != Unknown {
				t.Errorf("%s: %d is %s, want unknown", name, status, got)
			}
		}
	}
}
