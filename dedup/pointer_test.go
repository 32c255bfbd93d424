package dedup

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPointerFind(t *testing.T) {
	tests := []struct {
		pointer, body string
		want          string // "-": missing
	}{
		{"/id", `{"id":"a"}`, "a"},
		{"/id", ` { "x" : [1,{"id":"no"}] , "id" : "a" } `, "a"},
		{"/a/b", `{"a":{"b":"deep"},"b":"shallow"}`, "deep"},
		{"/a/1/b", `{"a":[{"b":"0"},{"b":"1"}]}`, "1"},
		{"/0", `["zero","one"]`, "zero"},
		{"/1", `[ [ ] , {"a":"]"} ]`, "-"},
		{"/2", `[[],{"a":"]"}, 3 ]`, "3"},
		{"/", `{"":"the empty key"}`, "the empty key"},
		{"/a~1b/~0", `{"a/b":{"~":"escaped"}}`, "escaped"},
		{"/~01", `{"~1":"order of unescaping"}`, "order of unescaping"},
		// Numbers stay as they are written.
		{"/n", `{"n":9007199254740993}`, "9007199254740993"},
		{"/n", `{"n":9007199254740992}`, "9007199254740992"},
		{"/n", `{"n": 1.0 }`, "1.0"},
		{"/n", `{"n":-1E+2}`, "-1E+2"},
		{"/0", `[1]`, "1"},
		// Strings are decoded, without a loss.
		{"/s", `{"s":"a\"b\\c\/d\u0041\n"}`, "a\"b\\c/dA\n"},
		{"/s", `{"s":"\ud83d\ude00"}`, "😀"},
		{"/s", `{"s":"😀"}`, "😀"},
		{"/s", `{"s":"\ufffd"}`, "\ufffd"},
		{"/s", `{"s":"\\ud83d"}`, `\ud83d`},
		{"/s", `{"s":""}`, ""},
		{"/\u0041", `{"\u0041":"escaped key"}`, "escaped key"},
		{"/s", `{"s":"\ud83d"}`, "-"},
		{"/s", `{"s":"\ude00"}`, "-"},
		{"/s", `{"s":"\ud83dx"}`, "-"},
		{"/s", `{"s":"\ud83d\ud83d"}`, "-"},
		{"/s", `{"s":"\ude00\ud83d"}`, "-"},
		{"/s", "{\"s\":\"\xff\"}", "-"},
		// Neither one certain text nor a value at all.
		{"/v", `{"v":null}`, "-"},
		{"/v", `{"v":true}`, "-"},
		{"/v", `{"v":{}}`, "-"},
		{"/v", `{"v":[]}`, "-"},
		{"/v", `{}`, "-"},
		{"/v", `"v"`, "-"},
		{"/v", `1`, "-"},
		{"/v/w", `{"v":"w"}`, "-"},
		// A key twice: on the path only.
		{"/id", `{"id":"a","id":"a"}`, "-"},
		{"/id", `{"id":"a","\u0069d":"b"}`, "-"},
		{"/a/id", `{"a":{"id":"1"},"a":{"id":"2"}}`, "-"},
		{"/id", `{"id":"a","x":1,"x":2}`, "a"},
		// Not JSON, wherever the mistake is.
		{"/id", ``, "-"},
		{"/id", `{"id":"a"`, "-"},
		{"/id", `{"id":"a"} x`, "-"},
		{"/id", `{"id":"a",}`, "-"},
		{"/id", `{"id":"a","n":01}`, "-"},
		{"/id", "\ufeff{\"id\":\"a\"}", "-"},
		{"/id", `{"id":` + strings.Repeat("[", 20_000), "-"},
		// Array indexes.
		{"/-", `["a"]`, "-"},
		{"/00", `["a"]`, "-"},
		{"/-1", `["a"]`, "-"},
		{"/1", `["a"]`, "-"},
		{"/+0", `["a"]`, "-"},
		{"/0", `{"0":"a key"}`, "a key"},
	}
	for _, test := range tests {
		p, err := parsePointer(test.pointer)
		if err != nil {
			t.Fatal(err)
		}
		got, found := p.find([]byte(test.body))
		if !found {
			got = "-"
		}
		if got != test.want {
			t.Errorf("%s in %.60s: got %q, want %q", test.pointer, test.body, got, test.want)
		}
	}
}

func FuzzPointer(f *testing.F) {
	for _, body := range []string{
		`{"a":{"b":["x",1]}}`, `{"a":"\ud83d\ude00","a":1}`, `[{"b":1.50},"\\\""]`, `{"a":"\ud83d\ud83d\ude00"}`,
	} {
		f.Add("/a", body)
		f.Add("/a/b/1", body)
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		p, err := parsePointer(text)
		if err != nil {
			return
		}
		got, found := p.find([]byte(body))
		if !found {
			return
		}
		// The standard decoder agrees wherever it finds one value at all.
		want, ok := lookUp([]byte(body), p)
		if !ok || got != want {
			t.Errorf("%s in %q: got %q, the standard decoder finds %q, %v", text, body, got, want, ok)
		}
	})
}

// lookUp follows a pointer by decoding level after level.
func lookUp(body []byte, p pointer) (string, bool) {
	raw := json.RawMessage(body)
	for _, token := range p {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case json.Unmarshal(raw, &object) == nil && object != nil:
			raw = object[token]
		case json.Unmarshal(raw, &array) == nil:
			var index int
			if json.Unmarshal([]byte(token), &index) != nil || index >= len(array) {
				return "", false
			}
			raw = array[index]
		}
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var number json.Number
	err := json.Unmarshal(raw, &number)
	return number.String(), err == nil
}

func TestZeroIsNoID(t *testing.T) {
	for number, want := range map[string]bool{
		"0": true, "-0": true, "0.0": true, "0e5": true, "0.00E+3": true, "1": false, "10": false, "0.1": false, "-7": false, "1e-5": false,
	} {
		if got := isZero(number); got != want {
			t.Errorf("%s: %v", number, got)
		}
		id, ok := ParseSources("json:/id").Identify(Envelope{Body: []byte(`{"id": ` + number + `}`)})
		if ok == want {
			t.Errorf("%s is the ID %q, %v", number, id.Value, ok)
		}
	}
	if id, ok := ParseSources("header:x").Identify(Envelope{Headers: map[string]any{"x": int64(0)}}); ok {
		t.Errorf("the header 0 is the ID %q", id.Value)
	}
	if id, ok := ParseSources("header:x").Identify(Envelope{Headers: map[string]any{"x": "0"}}); !ok || id.Value != "0" {
		t.Errorf("the text 0 is %q, %v", id.Value, ok)
	}
}
