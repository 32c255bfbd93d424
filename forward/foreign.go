package forward

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	// maxForeign bounds what publishers can add to a request: servers refuse a
	// request whose headers are too big (8 KiB in all for some), and then no
	// attempt could ever succeed.
	maxForeign = 6 << 10
	// maxForeignCount bounds the headers of their own for AMQP headers: servers
	// refuse too many as well (Apache and gunicorn more than 100 in all). The rest
	// goes into RabbitMQ-Headers.
	maxForeignCount = 48

	foreignPrefix = "RabbitMQ-Header-"
	foreignRest   = "RabbitMQ-Headers"
)

// foreignHeader is something the publisher wrote, encoded: a header of its own, or
// a member of the JSON object in RabbitMQ-Headers.
type foreignHeader struct {
	name  string // of the HTTP header; "" for a member
	value string // of the HTTP header; `"name":value` for a member
}

// size is what the header adds to the request: ": " and a line end with a header,
// a comma with a member.
func (f *foreignHeader) size() int {
	if f.name == "" {
		return len(f.value) + 1
	}
	return len(f.name) + len(f.value) + 4
}

// addForeign adds what the publisher wrote, within maxForeign, and says how many
// items were dropped.
func addForeign(s *headerSet, r *Request) (dropped int) {
	foreign := make([]foreignHeader, 0, 6+len(r.Headers))
	property := func(name, value string) {
		if value != "" {
			foreign = append(foreign, foreignHeader{name: name, value: encodeValue(value)})
		}
	}
	property("RabbitMQ-Message-Id", r.MessageID)
	property("RabbitMQ-Correlation-Id", r.CorrelationID)
	property("RabbitMQ-Type", r.Type)
	property("RabbitMQ-App-Id", r.AppID)
	property("RabbitMQ-Reply-To", r.ReplyTo)
	property("RabbitMQ-Content-Encoding", r.ContentEncoding)
	foreign = mapHeaders(foreign, r.Headers)
	foreign, dropped = fit(foreign)

	var members []string
	for i := range foreign {
		if f := &foreign[i]; f.name != "" {
			s.put(f.name, f.value)
		} else {
			members = append(members, f.value)
		}
	}
	if len(members) > 0 {
		s.put(foreignRest, "{"+strings.Join(members, ",")+"}")
	}
	return dropped
}

// mapHeaders appends each AMQP header in the form in which it travels, in the order
// of their names.
func mapHeaders(foreign []foreignHeader, headers map[string]any) []foreignHeader {
	if len(headers) == 0 {
		return foreign
	}
	names := slices.Sorted(maps.Keys(headers))
	spellings := make(map[string]int, len(names))
	for _, name := range names {
		spellings[strings.ToLower(name)]++
	}
	own := 0
	for _, name := range names {
		value := headers[name]
		if text, ok := value.(string); ok && isTraceHeader(name) && isLegalValue(text) {
			foreign = append(foreign, foreignHeader{name: name, value: text})
			continue
		}
		// HTTP knows no case in names: two AMQP names that differ only in case would
		// meet, so both keep their spelling in JSON.
		if own < maxForeignCount && isPlainName(name) && spellings[strings.ToLower(name)] == 1 {
			own++
			foreign = append(foreign, foreignHeader{name: foreignPrefix + name, value: encodeValue(valueText(value))})
			continue
		}
		member := jsonText(name) + ":" + jsonText(plainValue(value))
		foreign = append(foreign, foreignHeader{value: encodeValue(member)})
	}
	return foreign
}

// fit drops the largest until the rest has room. The order stays.
func fit(foreign []foreignHeader) (kept []foreignHeader, dropped int) {
	total := len(foreignRest) + len(": {}\r\n")
	for i := range foreign {
		total += foreign[i].size()
	}
	if total <= maxForeign {
		return foreign, 0
	}
	order := make([]int, len(foreign))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(foreign[b].size(), foreign[a].size())
	})
	for total > maxForeign {
		largest := &foreign[order[dropped]]
		total -= largest.size()
		*largest = foreignHeader{}
		dropped++
	}
	return slices.DeleteFunc(foreign, func(f foreignHeader) bool { return f == foreignHeader{} }), dropped
}

// isTraceHeader names the headers of W3C Trace Context and Baggage, which pass
// through under their own names.
func isTraceHeader(name string) bool {
	return name == "traceparent" || name == "tracestate" || name == "baggage"
}

// isPlainName says whether every server on the way passes a header of this name:
// letters, digits and hyphens. (nginx and others drop names with an underscore.)
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		if (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') && name[i] != '-' {
			return false
		}
	}
	return name != ""
}
