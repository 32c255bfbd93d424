package forward

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Statuses is a list of statuses and ranges of them: 200-299,409.
type Statuses []statusSpan

// statusSpan is the statuses from low to high.
type statusSpan struct{ low, high int }

const (
	lowestStatus  = 200 // below it is no answer to a request (RFC 9110, 15.2)
	highestStatus = 599
)

// EnvDecode makes Statuses readable by go-envconfig.
func (s *Statuses) EnvDecode(text string) error {
	*s = nil
	if text == "" { // not set
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		span, err := parseSpan(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*s = append(*s, span)
	}
	return nil
}

func parseSpan(text string) (statusSpan, error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(low))
	last, err2 := strconv.Atoi(strings.TrimSpace(high))
	if errors.Join(err1, err2) != nil || first < lowestStatus || last > highestStatus || first > last {
		return statusSpan{}, fmt.Errorf("%q is no status from %d to %d and no range of them, like 200-299,409", text, lowestStatus, highestStatus)
	}
	return statusSpan{first, last}, nil
}

func (s Statuses) contain(status int) bool {
	for _, span := range s {
		if span.low <= status && status <= span.high {
			return true
		}
	}
	return false
}

// statusLists is what the settings give, an outcome after the other.
func (c *Config) statusLists() []statusList {
	return []statusList{
		{"FORWARD_STATUS_DONE", c.StatusDone, Done},
		{"FORWARD_STATUS_DEFER", c.StatusDefer, Defer},
		{"FORWARD_STATUS_FAIL", c.StatusFail, Fail},
		{"FORWARD_STATUS_REJECT", c.StatusReject, Reject},
		{"FORWARD_STATUS_UNKNOWN", c.StatusUnknown, Unknown},
	}
}

type statusList struct {
	variable string
	statuses Statuses
	outcome  Outcome
}

// checkStatuses refuses a status that two lists claim.
func (c *Config) checkStatuses() []error {
	var problems []error
	lists := c.statusLists()
	for i, list := range lists {
		for _, other := range lists[i+1:] {
			for status := lowestStatus; status <= highestStatus; status++ {
				if list.statuses.contain(status) && other.statuses.contain(status) {
					problems = append(problems, fmt.Errorf("%s holds %d, and so does %s: keep it in one of the two", list.variable, status, other.variable))
					break
				}
			}
		}
	}
	return problems
}

// outcomes is what each status from lowestStatus to highestStatus means. A list that is set replaces the default list of
// its outcome, and wins over the other defaults. What is in no list then is Unknown from 200 to 299, since the work was
// probably done, and for 502 and 504, by which a proxy says that it does not know; and Fail otherwise: tried again, and
// in the end a person's to look at.
func (c *Config) outcomes() statusTable {
	var table statusTable
	set := map[Outcome]bool{}
	for _, list := range c.statusLists() {
		set[list.outcome] = len(list.statuses) > 0
	}
	for i := range table {
		status := lowestStatus + i
		table[i] = defaultOutcome(status)
		if set[table[i]] {
			table[i] = leftover(status)
		}
		for _, list := range c.statusLists() {
			if list.statuses.contain(status) {
				table[i] = list.outcome
			}
		}
	}
	return table
}

// leftover is what a status means whose default list was replaced, and that is in no other.
func leftover(status int) Outcome {
	if status < 300 || status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		return Unknown
	}
	return Fail
}

// statusTable holds the outcome of each status from lowestStatus to highestStatus.
type statusTable [highestStatus - lowestStatus + 1]Outcome

// outcome of a status; one outside the table is no answer that means anything.
func (t *statusTable) outcome(status int) Outcome {
	if status < lowestStatus || status > highestStatus {
		return Unknown
	}
	return t[status-lowestStatus]
}

// defaultOutcome is what a status means unless a setting says otherwise.
func defaultOutcome(status int) Outcome {
	switch status {
	case 409, 425, 429, 503:
		return Defer
	case 502, 504:
		return Unknown
	case 401, 403, 404, 405, 408:
		return Fail
	}
	switch status / 100 {
	case 2:
		return Done
	case 3, 5:
		return Fail
	case 4:
		return Reject
	}
	return Unknown
}
