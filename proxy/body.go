package proxy

import (
	"errors"
	"fmt"
	"strings"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// BodySource is what of a message becomes the body of the request: all of it, or one value of its JSON.
type BodySource struct {
	text string
	part *dedup.Part // nil: all
}

// EnvDecode implements envconfig's decoder.
func (b *BodySource) EnvDecode(text string) error {
	*b = BodySource{text: text}
	if text == "" || text == "raw" {
		return nil
	}
	pointer, ok := strings.CutPrefix(text, "json:")
	if !ok {
		return fmt.Errorf("%q is neither raw nor json:/POINTER, like json:/message", text)
	}
	part, err := dedup.ParsePart(pointer)
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	b.part = &part
	return nil
}

// String is the text of FORWARD_BODY.
func (b BodySource) String() string { return b.text }

var errNoPart = errors.New("the message has no JSON body with the value that FORWARD_BODY names")

// of returns what is sent of a message's body, and its content type: an envelope's own says nothing of what is in it, which
// is JSON unless setting, FORWARD_CONTENT_TYPE, names another type.
func (b BodySource) of(body []byte, contentType, setting string) (sent []byte, typ string, err error) {
	if b.part == nil {
		return body, contentType, nil
	}
	sent, ok := b.part.Of(body)
	if !ok {
		return nil, "", fmt.Errorf("%w (%s)", errNoPart, b.text)
	}
	if setting != "" && setting != forward.AutoType {
		return sent, setting, nil
	}
	return sent, "application/json", nil
}
