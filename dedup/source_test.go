package dedup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIdentify(t *testing.T) {
	body := []byte(`{"messageId": "from the body", "n": 9007199254740993}`)
	tests := map[string]struct {
		from     string
		envelope Envelope
		want     ID // zero: missing
	}{
		"message ID":            {"message-id", Envelope{MessageID: "m-1"}, ID{"", "m-1"}},
		"correlation ID":        {"correlation-id", Envelope{CorrelationID: "c-1", MessageID: "m"}, ID{"", "c-1"}},
		"header":                {"header:x-message-id", Envelope{Headers: map[string]any{"x-message-id": "h-1"}}, ID{"", "h-1"}},
		"header, other case":    {"header:X-Message-Id", Envelope{Headers: map[string]any{"x-message-id": "h-1"}}, ID{}},
		"header with a colon":   {"header:a:b", Envelope{Headers: map[string]any{"a:b": "h"}}, ID{"", "h"}},
		"body":                  {"json:/messageId", Envelope{Body: body}, ID{"", "from the body"}},
		"number in the body":    {"json:/n", Envelope{Body: body}, ID{"", "9007199254740993"}},
		"first wins":            {"message-id,header:h", Envelope{MessageID: "m", Headers: map[string]any{"h": "x"}}, ID{"", "m"}},
		"fallback":              {"message-id, header:h", Envelope{Headers: map[string]any{"h": "x"}}, ID{"header:h", "x"}},
		"fallback past a blank": {"message-id,json:/messageId", Envelope{MessageID: " \t\x00", Body: body}, ID{"json:/messageId", "from the body"}},
		"nothing":               {"message-id,correlation-id,header:h,json:/n", Envelope{}, ID{}},
		"bytes are kept":        {"message-id", Envelope{MessageID: " caf\xe9\x00 "}, ID{"", " caf\xe9\x00 "}},
		"not ASCII":             {"message-id", Envelope{MessageID: "größe-№1"}, ID{"", "größe-№1"}},
		"only wide white space": {"message-id", Envelope{MessageID: "\u2003\u00a0"}, ID{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sources := ParseSources(test.from)
			if len(sources.problems) > 0 {
				t.Fatal(sources.problems)
			}
			got, found := sources.Identify(test.envelope)
			if got != test.want || found != (test.want != ID{}) {
				t.Errorf("got %q, %v; want %q", got, found, test.want)
			}
		})
	}
}

func TestHeaderValuesAsIDs(t *testing.T) {
	tests := []struct {
		value any
		want  string // "": missing
	}{
		{"text", "text"},
		{[]byte("bytes\xff"), "bytes\xff"},
		{int8(-8), "-8"},
		{int16(-16), "-16"},
		{int32(-32), "-32"},
		{int64(9007199254740993), "9007199254740993"},
		{int(7), "7"},
		{uint8(255), "255"},
		{uint16(65535), "65535"},
		{uint32(4294967295), "4294967295"},
		{uint64(18446744073709551615), "18446744073709551615"},
		{"", ""},
		{nil, ""},
		{true, ""},
		{float32(1), ""},
		{float64(1), ""},
		{time.Unix(0, 0), ""},
		{[]any{"a"}, ""},
		{map[string]any{"a": "b"}, ""},
	}
	sources := ParseSources("header:h")
	for _, test := range tests {
		got, found := sources.Identify(Envelope{Headers: map[string]any{"h": test.value}})
		if got.Value != test.want || found != (test.want != "") {
			t.Errorf("%T %v: got %q, %v; want %q", test.value, test.value, got.Value, found, test.want)
		}
	}
}

func TestHashID(t *testing.T) {
	base := Envelope{Exchange: "orders", RoutingKey: "created", Type: "order", Body: []byte("{}")}
	id := HashID(base)
	if id.Source != "hash" || len(id.Value) != 64 {
		t.Fatalf("hash: %+v", id)
	}
	same := base
	same.MessageID, same.Headers = "other", map[string]any{"x": "y"}
	if HashID(same) != id {
		t.Error("the hash depends on more than exchange, routing key, type and body")
	}
	// The same bytes, split otherwise.
	seen := map[ID]bool{id: true}
	for _, other := range []Envelope{
		{Exchange: "order", RoutingKey: "screated", Type: "order", Body: []byte("{}")},
		{Exchange: "orders", RoutingKey: "createdorder", Body: []byte("{}")},
		{Exchange: "orders", RoutingKey: "created", Type: "order{}"},
		{},
	} {
		if got := HashID(other); seen[got] {
			t.Errorf("%+v has the hash of another", other)
		} else {
			seen[got] = true
		}
	}
	if got, _ := ParseSources("hash").Identify(base); got != (ID{Value: id.Value}) {
		t.Errorf("as the first source: %+v", got)
	}
	if got, _ := ParseSources("message-id,hash").Identify(base); got != id {
		t.Errorf("as a fallback: %+v", got)
	}
}

func TestSourcesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                           `"" is no place`,
		"message-id,":                `"" is no place`,
		"message_id":                 `"message_id" is no place`,
		"header:":                    `"header:" is no place`,
		"json:messageId":             "begins with /",
		"json:/a~b":                  "~0",
		"json:":                      `"json:" is no place`,
		"hash,message-id":            "hash last",
		"message-id, message-id":     "twice",
		"message-id,nonsense,json:x": "nonsense",
	} {
		problems := strings.Join(ParseSources(text).problems, "\n")
		if !strings.Contains(problems, want) {
			t.Errorf("%q: got %q, want %q in it", text, problems, want)
		}
	}
	if got := len(ParseSources("a,b,message-id").problems); got != 2 {
		t.Errorf("two mistakes give %d problems", got)
	}
}

func TestSourcesAsText(t *testing.T) {
	const text = "message-id,header:x-id,json:/a/b,hash"
	if diff := cmp.Diff(text, ParseSources(" message-id , header:x-id,json:/a/b, hash").String()); diff != "" {
		t.Error(diff)
	}
}
