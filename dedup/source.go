package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Envelope is what an ID can be read from.
type Envelope struct {
	MessageID, CorrelationID, Type, Exchange, RoutingKey string
	Headers                                              map[string]any
	Body                                                 []byte
}

// ID is a message's identity within one consumer, byte for byte.
type ID struct {
	// Source is "" when the first entry of DEDUP_ID_FROM found the ID,
	// otherwise that entry's text, so that an ID from one place never equals
	// an ID from another.
	Source string
	Value  string
}

// Sources is an ordered list of places to look for an ID. The zero value
// finds none.
type Sources struct {
	entries  []source
	problems []string
}

// source is one entry of DEDUP_ID_FROM.
type source struct {
	text string
	find func(*Envelope) (string, bool)
}

// sourceHash is the entry that always finds an ID.
const sourceHash = "hash"

// ParseSources reads the text of DEDUP_ID_FROM. It never fails at once: what
// is wrong is reported by QueueConfig.Validate, with all the rest.
func ParseSources(text string) Sources {
	var s Sources
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		find, problem := finder(entry)
		switch {
		case problem != "":
		case seen[entry]:
			problem = fmt.Sprintf("%q is listed twice; once is enough", entry)
		case seen[sourceHash]:
			problem = fmt.Sprintf("%q comes after hash, which always finds an ID; put hash last", entry)
		}
		seen[entry] = true
		if problem != "" {
			s.problems = append(s.problems, problem)
			continue
		}
		s.entries = append(s.entries, source{text: entry, find: find})
	}
	return s
}

// EnvDecode makes Sources readable by go-envconfig.
func (s *Sources) EnvDecode(text string) error {
	*s = ParseSources(text)
	return nil
}

// Problems returns what is wrong with the text that was read.
func (s Sources) Problems() []string { return s.problems }

// String returns the list as DEDUP_ID_FROM has it.
func (s Sources) String() string {
	texts := make([]string, len(s.entries))
	for i, entry := range s.entries {
		texts[i] = entry.text
	}
	return strings.Join(texts, ",")
}

// finder returns the function behind one entry, or what is wrong with it.
func finder(entry string) (find func(*Envelope) (string, bool), problem string) {
	kind, rest, _ := strings.Cut(entry, ":")
	switch {
	case entry == "message-id":
		return func(e *Envelope) (string, bool) { return e.MessageID, true }, ""
	case entry == "correlation-id":
		return func(e *Envelope) (string, bool) { return e.CorrelationID, true }, ""
	case entry == sourceHash:
		return func(e *Envelope) (string, bool) { return contentHash(e), true }, ""
	case kind == "header" && rest != "":
		return func(e *Envelope) (string, bool) { return headerText(e.Headers[rest]) }, ""
	case kind == "json" && rest != "":
		pointer, err := parsePointer(rest)
		if err != nil {
			return nil, fmt.Sprintf("%q: %v", entry, err)
		}
		return func(e *Envelope) (string, bool) { return pointer.find(e.Body) }, ""
	}
	return nil, fmt.Sprintf("%q is no place to find an ID; use message-id, correlation-id, header:NAME, json:/POINTER or hash", entry)
}

// Identify returns the first ID that the list finds. Absent, empty, and only
// white space or NUL all count as missing.
func (s Sources) Identify(e Envelope) (ID, bool) {
	for i, entry := range s.entries {
		value, ok := entry.find(&e)
		if !ok || blank(value) {
			continue
		}
		if i == 0 {
			return ID{Value: value}, true
		}
		return ID{Source: entry.text, Value: value}, true
	}
	return ID{}, false
}

func blank(value string) bool {
	return strings.TrimFunc(value, func(r rune) bool { return r == 0 || unicode.IsSpace(r) }) == ""
}

// headerText renders a header's value as an ID. Only strings and integers
// have one text that every publisher would agree on. The integer 0 counts as
// missing, see isZero.
func headerText(value any) (string, bool) {
	text, isNumber, ok := headerScalar(value)
	return text, ok && !(isNumber && isZero(text))
}

func headerScalar(value any) (text string, isNumber, ok bool) {
	switch v := value.(type) {
	case string:
		return v, false, true
	case []byte:
		return string(v), false, true
	case int8:
		return strconv.FormatInt(int64(v), 10), true, true
	case int16:
		return strconv.FormatInt(int64(v), 10), true, true
	case int32:
		return strconv.FormatInt(int64(v), 10), true, true
	case int64:
		return strconv.FormatInt(v, 10), true, true
	case int:
		return strconv.Itoa(v), true, true
	case uint8:
		return strconv.FormatUint(uint64(v), 10), true, true
	case uint16:
		return strconv.FormatUint(uint64(v), 10), true, true
	case uint32:
		return strconv.FormatUint(uint64(v), 10), true, true
	case uint64:
		return strconv.FormatUint(v, 10), true, true
	}
	return "", false, false
}

// HashID identifies a message by its content. Its source is "hash".
func HashID(e Envelope) ID {
	return ID{Source: sourceHash, Value: contentHash(&e)}
}

// contentHash is the SHA-256 of exchange, routing key, type and body. Each is
// preceded by its length, so that no two messages run together into one text.
func contentHash(e *Envelope) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range []string{e.Exchange, e.RoutingKey, e.Type} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	binary.BigEndian.PutUint64(length[:], uint64(len(e.Body)))
	hash.Write(length[:])
	hash.Write(e.Body)
	return hex.EncodeToString(hash.Sum(nil))
}
