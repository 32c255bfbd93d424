package forward

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A placeholder stands for something of the message: {queue}, {routing_key}, {type}, {id} and {header:NAME}. In a URL
// each is escaped as one path segment, or as one value in the query; in a header as every value of the message is.

// phrase is a text with placeholders: pieces in order.
type phrase []piece

// piece is literal text, or a placeholder when name is set.
type piece struct {
	literal string
	name    string // "routing_key", "header:x-tenant"
}

var (
	// placeholderForm is what looks like a placeholder, known or not.
	placeholderForm = regexp.MustCompile(`\{[^{}]*\}`)
	// placeholderName is how the name of one looks; other text in braces may be a part of a header's value, such as JSON.
	placeholderName = regexp.MustCompile(`^[A-Za-z_-]+$|^header:`)
)

// errPlaceholder says which placeholders there are.
var errPlaceholder = errors.New("has a placeholder that does not exist: there are {queue}, {routing_key}, {type}, {id} and {header:NAME}")

// What to do with an unknown placeholder. Its text is shown only where no secret can be.
func refuseByName(name string) error { return fmt.Errorf("%w; found {%s}", errPlaceholder, name) }

func refuse(string) error { return errPlaceholder }

func refuseWhatLooksLikeOne(name string) error {
	if placeholderName.MatchString(name) {
		return errPlaceholder
	}
	return nil
}

// parsePhrase splits a text. {queue} is filled in at once, as the same for all messages of a client.
// unknown may refuse the name of a placeholder that does not exist; else it is taken as it stands.
func parsePhrase(text, queue string, escape func(string) string, unknown func(name string) error) (phrase, error) {
	var p phrase
	literal := func(s string) {
		if s == "" {
			return
		}
		if n := len(p); n > 0 && p[n-1].name == "" {
			p[n-1].literal += s
			return
		}
		p = append(p, piece{literal: s})
	}
	for text != "" {
		found := placeholderForm.FindStringIndex(text)
		if found == nil {
			break
		}
		literal(text[:found[0]])
		name := text[found[0]+1 : found[1]-1]
		text = text[found[1]:]
		header, isHeader := strings.CutPrefix(name, "header:")
		switch {
		case name == "queue":
			literal(escape(queue))
		case name == "routing_key", name == "type", name == "id", isHeader && header != "":
			p = append(p, piece{name: name})
		default:
			if err := unknown(name); err != nil {
				return nil, err
			}
			literal("{" + name + "}")
		}
	}
	literal(text)
	return p, nil
}

// fixed returns the text when it is the same for every message.
func (p phrase) fixed() (string, bool) {
	switch {
	case len(p) == 0:
		return "", true
	case len(p) == 1 && p[0].name == "":
		return p[0].literal, true
	}
	return "", false
}

// fill puts a message's values in. check may refuse a value.
func (p phrase) fill(r *Request, escape func(string) string, check func(name, value string) error) (string, error) {
	var b strings.Builder
	for _, piece := range p {
		if piece.name == "" {
			b.WriteString(piece.literal)
			continue
		}
		value := r.value(piece.name)
		if check != nil {
			if err := check(piece.name, value); err != nil {
				return "", err
			}
		}
		b.WriteString(escape(value))
	}
	return b.String(), nil
}

// value is what a placeholder stands for; "" when the message has nothing there.
func (r *Request) value(name string) string {
	switch name {
	case "routing_key":
		return r.RoutingKey
	case "type":
		return r.Type
	case "id":
		return r.IdempotencyKey
	}
	value, ok := r.Headers[strings.TrimPrefix(name, "header:")]
	if !ok || value == nil {
		return ""
	}
	return valueText(value)
}

// errAddress is a message that a URL cannot be made for.
var errAddress = errors.New("the URL cannot be made for this message")

// oneSegment refuses what would not stay one segment of a path: nothing at all, and the names that servers resolve, some
// of them after they have decoded a slash.
func oneSegment(name, value string) error {
	if value == "" {
		return fmt.Errorf("%w: it has nothing for {%s}", errAddress, name)
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return fmt.Errorf("%w: {%s} has the part %q, which is no name in a path", errAddress, name, part)
		}
	}
	return nil
}

// address is the path and query of a URL with placeholders.
type address struct {
	path, query phrase
	hasQuery    bool
}

func parseAddress(text, queue string) (address, error) {
	path, query, hasQuery := strings.Cut(text, "?")
	a := address{hasQuery: hasQuery}
	var err error
	if a.path, err = parsePhrase(path, queue, url.PathEscape, refuseByName); err != nil {
		return address{}, err
	}
	a.query, err = parsePhrase(query, queue, url.QueryEscape, refuse)
	return a, err
}

// hasBraces finds braces that belong to no placeholder.
func (p phrase) hasBraces() bool {
	for _, piece := range p {
		if strings.ContainsAny(piece.literal, "{}") {
			return true
		}
	}
	return false
}

// names are the placeholders that a message fills, in order.
func (a address) names() []string {
	var names []string
	for _, p := range [...]phrase{a.path, a.query} {
		for _, piece := range p {
			if piece.name != "" {
				names = append(names, piece.name)
			}
		}
	}
	return names
}

// isFixed tells whether it is the same for all messages.
func (a address) isFixed() bool {
	_, path := a.path.fixed()
	_, query := a.query.fixed()
	return path && query
}

// fill returns path and query for a message.
func (a address) fill(r *Request) (string, error) {
	path, err := a.path.fill(r, url.PathEscape, oneSegment)
	if err != nil || !a.hasQuery {
		return path, err
	}
	query, err := a.query.fill(r, url.QueryEscape, nil)
	return path + "?" + query, err
}

// fillSample fills every placeholder with a plain letter.
func (a address) fillSample() string {
	r := &Request{RoutingKey: "x", Type: "x", IdempotencyKey: "x", Headers: map[string]any{}}
	for _, name := range a.names() {
		if header, ok := strings.CutPrefix(name, "header:"); ok {
			r.Headers[header] = "x"
		}
	}
	filled, _ := a.fill(r) // "x" is refused nowhere
	return filled
}
