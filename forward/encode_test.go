package forward

import (
	"encoding/json"
	"math"
	"net/url"
	"testing"
	"time"
)

func TestEncodeValue(t *testing.T) {
	cases := map[string]string{
		"":               "",
		"order-1":        "order-1",
		"a b":            "a b",
		" a ":            "%20a%20",
		" ":              "%20",
		"100%":           "100%25",
		"a+b":            "a+b",
		"Zürich":         "Z%C3%BCrich",
		"a\r\nHost: b":   "a%0D%0AHost: b",
		"\x00\t\x7f\xff": "%00%09%7F%FF",
		`{"a":"b"}`:      `{"a":"b"}`,
	}
	for in, want := range cases {
		if got := encodeValue(in); got != want {
			t.Errorf("encodeValue(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEncodeValue(f *testing.F) {
	for _, seed := range []string{"", " ", "a b", "%", "%41", "+", "é", "\r\n", "\x00\xff", " x "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		encoded := encodeValue(in)
		if encoded != "" && !isLegalValue(encoded) {
			t.Errorf("encodeValue(%q) = %q, which HTTP cannot carry", in, encoded)
		}
		// PathUnescape is plain percent-decoding: it leaves + alone.
		if back, err := url.PathUnescape(encoded); err != nil || back != in {
			t.Errorf("%q came back as %q, %v", in, back, err)
		}
	})
}

type (
	namedTable  map[string]any
	namedList   []any
	namedText   string
	namedBytes  []byte
	namedFlag   bool
	decimalText struct{ text string }
	decimal     struct {
		Scale uint8
		Value int32
	}
)

func (d decimalText) String() string { return d.text }

func TestValueText(t *testing.T) {
	when := time.Date(2025, 3, 1, 13, 0, 0, 5e8, time.FixedZone("", 3600))
	cases := []struct {
		value any
		want  string
		json  string // as a member of RabbitMQ-Headers
	}{
		{nil, "null", "null"},
		{true, "true", "true"},
		{namedFlag(false), "false", "false"},
		{int(-1), "-1", "-1"},
		{int8(-8), "-8", "-8"},
		{int16(-16), "-16", "-16"},
		{int32(-32), "-32", "-32"},
		{int64(math.MinInt64), "-9223372036854775808", "-9223372036854775808"},
		{uint(1), "1", "1"},
		{uint8(8), "8", "8"},
		{uint16(16), "16", "16"},
		{uint32(32), "32", "32"},
		{uint64(math.MaxUint64), "18446744073709551615", "18446744073709551615"},
		{float32(0.1), "0.1", "0.1"},
		{float64(1e21), "1e+21", "1e+21"},
		{math.NaN(), "NaN", `"NaN"`},
		{math.Inf(-1), "-Inf", `"-Inf"`},
		{"text", "text", `"text"`},
		{namedText("text"), "text", `"text"`},
		{"<&>", "<&>", `"<&>"`},
		{[]byte("\x00\x01"), `"AAE="`, `"AAE="`},
		{namedBytes("\x00\x01"), `"AAE="`, `"AAE="`},
		{when, "2025-03-01T12:00:00.5Z", `"2025-03-01T12:00:00.5Z"`},
		{decimalText{"1.50"}, "1.50", `"1.50"`},
		{decimal{2, 150}, `{"Scale":2,"Value":150}`, `{"Scale":2,"Value":150}`},
		{[]any{1, "a", nil}, `[1,"a",null]`, `[1,"a",null]`},
		{map[string]any{"b": []any{math.NaN()}, "a": when}, `{"a":"2025-03-01T12:00:00.5Z","b":["NaN"]}`, `{"a":"2025-03-01T12:00:00.5Z","b":["NaN"]}`},
		{namedTable{"a": namedList{namedTable{}}}, `{"a":[{}]}`, `{"a":[{}]}`},
		{make(chan int), "", ""}, // only has to be harmless
	}
	for _, c := range cases {
		text, member := valueText(c.value), jsonText(plainValue(c.value))
		if !json.Valid([]byte(member)) {
			t.Errorf("%T %v: %s is not JSON", c.value, c.value, member)
		}
		if c.want != "" && (text != c.want || member != c.json) {
			t.Errorf("%T %v = %s and in JSON %s, want %s and %s", c.value, c.value, text, member, c.want, c.json)
		}
	}
}
