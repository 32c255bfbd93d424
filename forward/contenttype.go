package forward

import (
	"mime"
	"strings"
)

// AutoType is the value of FORWARD_CONTENT_TYPE that looks at the body.
const AutoType = "auto"

// isMediaType says whether s is a type/subtype, with parameters or without, that can be sent.
func isMediaType(s string) bool {
	typ, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(typ, "/") && isLegalValue(s)
}

// contentHeaders says what to send as Content-Type and Content-Encoding ("" is
// none) for the message's properties and body.
// fallback is FORWARD_CONTENT_TYPE.
func contentHeaders(contentType, contentEncoding string, body []byte, fallback string) (typ, encoding string) {
	typ = strings.Trim(contentType, " ")
	if !isLegalValue(typ) {
		if typ = fallback; fallback == "" || fallback == AutoType { // "": the zero Config
			typ = guessType(body)
		}
	}
	if contentEncoding == "" {
		return typ, ""
	}
	lower := strings.ToLower(strings.TrimSpace(contentEncoding))
	switch lower {
	case "gzip", "deflate", "br", "zstd", "identity":
		return typ, lower
	}
	if isCharset(lower) && !strings.Contains(strings.ToLower(typ), "charset=") {
		typ += "; charset=" + lower
	}
	return typ, ""
}

// guessType stands in for a content type that is missing or cannot be sent.
func guessType(body []byte) string {
	for _, c := range body {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			return "application/json"
		}
		break
	}
	return "application/octet-stream"
}

// isCharset recognises what publishers put into content_encoding when they mean a
// character set: Spring writes UTF-8, Celery utf-8. s is in lower case.
func isCharset(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	for _, family := range []string{"utf", "us-ascii", "ascii", "iso-8859-", "iso8859", "latin", "windows-", "cp", "koi8", "big5", "gb", "euc-", "shift_jis", "iso-2022-"} {
		if strings.HasPrefix(s, family) {
			return true
		}
	}
	return false
}
