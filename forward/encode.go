package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const upperHex = "0123456789ABCDEF"

// encodeValue makes any bytes a legal header value: what HTTP cannot carry
// (control and non-ASCII bytes, a space at either end) and % itself become %XX.
// Percent-decoding gives the bytes back.
func encodeValue(s string) string {
	escapes := 0
	for i := range len(s) {
		if mustEscape(s, i) {
			escapes++
		}
	}
	if escapes == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*escapes)
	for i := range len(s) {
		if mustEscape(s, i) {
			b.WriteByte('%')
			b.WriteByte(upperHex[s[i]>>4])
			b.WriteByte(upperHex[s[i]&15])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func mustEscape(s string, i int) bool {
	switch c := s[i]; {
	case c == ' ':
		return i == 0 || i == len(s)-1
	default:
		return c < ' ' || c == '%' || c >= 0x7f
	}
}

// isLegalValue says whether s can be sent as a header value as it stands: visible
// ASCII, with spaces only inside.
func isLegalValue(s string) bool {
	for i := range len(s) {
		if s[i] != '%' && mustEscape(s, i) {
			return false
		}
	}
	return s != ""
}

// valueText is the text of an AMQP header value: scalars as they read, everything
// else as JSON. It is not encoded yet.
func valueText(v any) string {
	switch plain := plainValue(v).(type) {
	case string:
		return plain
	case json.Number:
		return string(plain)
	case bool:
		return strconv.FormatBool(plain)
	default:
		return jsonText(plain)
	}
}

// jsonText is v as JSON on one line. v comes from plainValue.
func jsonText(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		// A type that JSON has no form for; AMQP has none such.
		return strconv.Quote(fmt.Sprint(v))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainValue turns an AMQP value into what encoding/json writes without loss:
// numbers as written, times as RFC 3339, bytes as they are (base64 in JSON), what
// JSON has no number for as text.
func plainValue(v any) any {
	switch v := v.(type) {
	case nil, bool, string, []byte:
		return v
	case time.Time:
		return formatTime(v)
	case float32:
		return plainFloat(float64(v), 32)
	case float64:
		return plainFloat(v, 64)
	case []any:
		return plainList(v)
	case map[string]any:
		return plainTable(v)
	case fmt.Stringer:
		return v.String()
	default:
		return plainReflected(v)
	}
}

func plainFloat(f float64, bits int) any {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return text
	}
	return json.Number(text)
}

func plainList(list []any) []any {
	plain := make([]any, len(list))
	for i, v := range list {
		plain[i] = plainValue(v)
	}
	return plain
}

func plainTable(table map[string]any) map[string]any {
	plain := make(map[string]any, len(table))
	for name, v := range table {
		plain[name] = plainValue(v)
	}
	return plain
}

// plainReflected handles integers of every size and types that are tables, lists
// or scalars under another name, as AMQP libraries have.
func plainReflected(v any) any {
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return json.Number(strconv.FormatInt(value.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return json.Number(strconv.FormatUint(value.Uint(), 10))
	case reflect.String:
		return value.String()
	case reflect.Bool:
		return value.Bool()
	case reflect.Map:
		if table := reflect.TypeFor[map[string]any](); value.CanConvert(table) {
			return plainTable(value.Convert(table).Interface().(map[string]any))
		}
	case reflect.Slice:
		if list := reflect.TypeFor[[]any](); value.CanConvert(list) {
			return plainList(value.Convert(list).Interface().([]any))
		}
	}
	return v
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
