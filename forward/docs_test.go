package forward

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tableRows returns the cells of the first table under a heading.
func tableRows(t *testing.T, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/handlers.md has no heading %q", heading)
	}
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("no table under %q", heading)
	}
	return rows[2:] // without head and rule
}

func TestDocsOutcomes(t *testing.T) {
	documented := map[int]string{}
	var names []string
	for _, row := range tableRows(t, "## Your answer decides") {
		names = append(names, row[0])
		for _, status := range parseStatuses(t, row[1]) {
			if before, twice := documented[status]; twice {
				t.Errorf("status %d is documented as %s and %s", status, before, row[0])
			}
			documented[status] = row[0]
		}
	}
	for status := 100; status <= 599; status++ {
		outcome, _ := Classify(status, http.Header{}, time.Now())
		if documented[status] != outcome.String() {
			t.Errorf("status %d is documented as %q, the code says %s", status, documented[status], outcome)
		}
	}
	var want []string
	for _, outcome := range Outcomes() {
		want = append(want, outcome.String())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("documented outcomes (-code +docs):\n%s", diff)
	}
}

// parseStatuses reads "200-299, 409"; "none" is none.
func parseStatuses(t *testing.T, list string) []int {
	t.Helper()
	var statuses []int
	if list == "none" {
		return nil
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || last < first {
			t.Fatalf("docs/handlers.md: %q is no list of statuses", list)
		}
		for status := first; status <= last; status++ {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// The documented headers are those of a request in which all are set.
func TestDocsHeaders(t *testing.T) {
	var documented []string
	for _, row := range tableRows(t, "## The request") {
		documented = append(documented, row[0])
	}
	client := newTestClient(t, "http://me:pw@127.0.0.1:1/")
	header := headersOf(client, &Request{
		Exchange: "e", RoutingKey: "r", IdempotencyKey: "i", Attempt: 1, OutcomeUnknown: true,
		MessageID: "m", CorrelationID: "c", Type: "t", AppID: "a", ReplyTo: "r", ContentEncoding: "gzip",
		Timestamp: time.Unix(1, 0), Priority: 1, Redelivered: true,
		Headers: map[string]any{"<name>": 1, "name": 1, "traceparent": "a", "tracestate": "b", "baggage": "c"},
	})
	sent := []string{"Content-Length"}
	for name := range header {
		sent = append(sent, strings.Replace(name, "RabbitMQ-Header-name", "RabbitMQ-Header-<name>", 1))
	}
	slices.Sort(documented)
	slices.Sort(sent)
	if diff := cmp.Diff(sent, documented); diff != "" {
		t.Errorf("headers (-code +docs):\n%s", diff)
	}
}
