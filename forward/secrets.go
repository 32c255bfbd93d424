package forward

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// minSecret is the length from which a text is taken out of errors; shorter ones would take words apart.
const minSecret = 5

// findSecrets lists the texts that no error may show, whoever says them: a service that answers with what it got, in an
// answer that cannot be read, has it quoted by the HTTP library.
func (c *Client) findSecrets() []string {
	var all []string
	add := func(texts ...string) {
		for _, text := range texts {
			if len(text) >= minSecret {
				all = append(all, text)
			}
		}
	}
	own, _ := parseOwnHeaders(c.config.Headers, c.queue) // without an error: they were validated
	for _, header := range own {
		if header.name == "Host" || header.name == "Connection" {
			continue
		}
		for _, piece := range header.value {
			add(strings.TrimSpace(piece.literal))
			add(strings.Fields(piece.literal)...) // what comes after Bearer or Basic
		}
	}
	addURL := func(u *url.URL, auth string) {
		add(auth, strings.TrimPrefix(auth, "Basic "), u.RawQuery)
		for _, values := range u.Query() {
			for _, value := range values {
				add(value, url.QueryEscape(value))
			}
		}
	}
	addURL(c.target.url, c.target.auth)
	if c.lookup != nil {
		addURL(c.lookup.url, c.lookup.auth)
	}
	if c.health != nil {
		addURL(c.health.URL, "")
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest first
	return all
}

// hiddenError is an error whose text has lost its secrets.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

// hide takes the secrets out of an error's text.
func (c *Client) hide(err error) error {
	text := err.Error()
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	if text == err.Error() {
		return err
	}
	return &hiddenError{text: text, err: err}
}
