package dedup

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pointer is a JSON pointer (RFC 6901), split and unescaped.
type pointer []string

func parsePointer(text string) (pointer, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, errors.New("a JSON pointer begins with /")
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, errors.New("in a JSON pointer ~ is written ~0 and / is written ~1")
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, nil
}

// find returns the string or number at the pointer. A number comes back
// exactly as it is written in the body: 9007199254740993 stays itself, and 1
// is not 1.0. Everything without one certain text is missing: null, booleans,
// objects, arrays, zero, invalid JSON or UTF-8, a key that stands twice on the path,
// and a string with half a surrogate pair, which has no UTF-8 form.
func (p pointer) find(body []byte) (string, bool) {
	value, ok := p.walk(body)
	if !ok {
		return "", false
	}
	switch c := value[0]; {
	case c == '"':
		return unquote(value[:valueEnd(value)])
	case c == '-' || '0' <= c && c <= '9':
		number := string(value[:valueEnd(value)])
		return number, !isZero(number)
	}
	return "", false
}

// walk returns the body from the value at the pointer on.
func (p pointer) walk(body []byte) (value []byte, ok bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	value = skipSpace(body)
	for _, token := range p {
		switch value[0] {
		case '{':
			value, ok = member(value, token)
		case '[':
			value, ok = element(value, token)
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return value, true
}

// Part is a place in a JSON body.
type Part struct{ pointer pointer }

// ParsePart reads a JSON pointer (RFC 6901), like /message or /0.
func ParsePart(text string) (Part, error) {
	p, err := parsePointer(text)
	return Part{p}, err
}

// Of returns the value at that place exactly as the body has it, byte for byte. It shares the body's memory. It is
// missing where the body is no JSON or not UTF-8, and where a key on the path is absent or stands twice.
func (p Part) Of(body []byte) ([]byte, bool) {
	value, ok := p.pointer.walk(body)
	if !ok {
		return nil, false
	}
	end := valueEnd(value)
	return value[:end:end], true
}

// isZero tells a number that is zero however it is written: the value of a field that nobody set. As an ID it would make one message of
// many; where zero really is one, it has to be sent as text.
func isZero(number string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return strings.Trim(digits, "-0.") == ""
}

// The functions below walk JSON that json.Valid has accepted; none of them
// checks the grammar again.

// member returns the value of an object's key, and false when the key is
// absent or stands there twice.
func member(object []byte, key string) (value []byte, ok bool) {
	rest := skipSpace(object[1:])
	for rest[0] != '}' {
		end := valueEnd(rest)
		name, nameOK := unquote(rest[:end])
		rest = skipSpace(rest[end:]) // at the colon
		rest = skipSpace(rest[1:])   // at the value
		if nameOK && name == key {
			if ok {
				return nil, false
			}
			value, ok = rest, true
		}
		rest = nextItem(rest)
	}
	return value, ok
}

// element returns an array's element. "-" and numbers with leading zeros name
// none (RFC 6901, section 4).
func element(array []byte, token string) ([]byte, bool) {
	index, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(index) != token || index < 0 {
		return nil, false
	}
	rest := skipSpace(array[1:])
	for ; rest[0] != ']'; index-- {
		if index == 0 {
			return rest, true
		}
		rest = nextItem(rest)
	}
	return nil, false
}

// nextItem skips the value at hand and a comma after it.
func nextItem(rest []byte) []byte {
	rest = skipSpace(rest[valueEnd(rest):])
	if rest[0] == ',' {
		rest = skipSpace(rest[1:])
	}
	return rest
}

func skipSpace(text []byte) []byte {
	return bytes.TrimLeft(text, " \t\r\n")
}

// valueEnd returns the length of the value that text begins with.
func valueEnd(text []byte) int {
	switch text[0] {
	case '"':
		return stringEnd(text)
	case '{', '[':
		depth := 0
		for i := 0; ; i++ {
			switch text[i] {
			case '"':
				i += stringEnd(text[i:]) - 1
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if depth == 0 {
				return i + 1
			}
		}
	}
	if end := bytes.IndexAny(text, ",]} \t\r\n"); end >= 0 {
		return end
	}
	return len(text)
}

func stringEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// unquote decodes a JSON string, and refuses one that encoding/json would
// decode with a loss.
func unquote(quoted []byte) (string, bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true
	}
	if hasLoneSurrogate(quoted) {
		return "", false
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return text, err == nil
}

// hasLoneSurrogate finds a \u escape that is half of a pair without the other
// half.
func hasLoneSurrogate(quoted []byte) bool {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		first, ok := escapedUnit(quoted[i:])
		i++
		switch {
		case !ok || first < 0xd800 || first > 0xdfff:
			continue
		case first > 0xdbff:
			return true
		}
		i += 5
		second, ok := escapedUnit(quoted[i:])
		if !ok || second < 0xdc00 || second > 0xdfff {
			return true
		}
		i++
	}
	return false
}

// escapedUnit reads the escape of a UTF-16 unit (\u and four digits) that text begins with.
func escapedUnit(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}
