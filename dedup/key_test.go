package dedup

import (
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	long := strings.Repeat("x", maxPlainID+1)
	tests := []struct {
		prefix, consumer string
		id               ID
		want             string
	}{
		{"rabbitonce", "//orders", ID{Value: "m-1"}, "rabbitonce://orders:m-1"},
		{"a:b", "c%d", ID{Value: "e:f%g"}, "a%3Ab:c%25d:e:f%g"},
		{"p", "c", ID{Source: "header:x", Value: "v"}, "p:c%from=header%3Ax:v"},
		{"p", "c", ID{Value: long[1:]}, "p:c:" + long[1:]},
		{"p", "c", ID{Value: long}, "p:c%sha256:84a0678c90937f5dcf9994d5866668da6b995109c8ad845410559b48a4ecafed"},
		{"p", "c", ID{Value: "{tag}"}, "p:c:{tag}"},
	}
	for _, test := range tests {
		got := Key(test.prefix, test.consumer, test.id)
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if length := len(Key("p", "c", ID{Value: strings.Repeat("x", 10_000)})); length > 100 {
		t.Errorf("a 10 KB ID makes a key of %d bytes", length)
	}
}

// FuzzKeyIsInjective compares two keys: equal exactly when all parts are.
func FuzzKeyIsInjective(f *testing.F) {
	long := strings.Repeat("y", maxPlainID+1)
	f.Add("p", "c", "", "id", "p:c", "", "", "id")
	f.Add("p", "c", "header:x", "id", "p", "c%from=header%3Ax", "", "id")
	f.Add("p", "c", "", long, "p", "c%sha256", "", Key("", "", ID{Value: long})[len(":%sha256:"):])
	f.Add("%", ":", "", ":", "%25", "%3A", "", ":")
	f.Fuzz(func(t *testing.T, prefix1, consumer1, source1, value1, prefix2, consumer2, source2, value2 string) {
		one, two := ID{source1, value1}, ID{source2, value2}
		key1, key2 := Key(prefix1, consumer1, one), Key(prefix2, consumer2, two)
		same := prefix1 == prefix2 && consumer1 == consumer2 && one == two
		if (key1 == key2) != same {
			t.Errorf("(%q, %q, %q) and (%q, %q, %q) give %q and %q", prefix1, consumer1, one, prefix2, consumer2, two, key1, key2)
		}
		checkKeyParses(t, key1, prefix1, consumer1, one)
		checkKeyParses(t, key2, prefix2, consumer2, two)
	})
}

// checkKeyParses reads the parts back from the key, as the grammar says: a
// mapping that can be undone is injective.
func checkKeyParses(t *testing.T, key, prefix, consumer string, id ID) {
	t.Helper()
	unescape := strings.NewReplacer("%25", "%", "%3A", ":").Replace
	parts := strings.SplitN(key, ":", 3)
	if len(parts) != 3 {
		t.Fatalf("%q has no three parts", key)
	}
	middle, hashed := strings.CutSuffix(parts[1], "%sha256")
	middle, source, _ := strings.Cut(middle, "%from=")
	if unescape(parts[0]) != prefix || unescape(middle) != consumer || unescape(source) != id.Source {
		t.Errorf("%q parses as prefix %q, consumer %q, source %q", key, parts[0], middle, source)
	}
	if hashed != (len(id.Value) > maxPlainID) || !hashed && parts[2] != id.Value {
		t.Errorf("%q parses as ID %q, hashed %v", key, parts[2], hashed)
	}
}
