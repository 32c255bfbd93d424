package forward

import "testing"

func TestContentHeaders(t *testing.T) {
	cases := []struct {
		contentType, contentEncoding, body string
		wantType, wantEncoding             string
	}{
		{"text/plain", "", "{}", "text/plain", ""},
		{" text/plain ", "", "", "text/plain", ""},
		{"", "", "", "application/octet-stream", ""},
		{"", "", "hello", "application/octet-stream", ""},
		{"", "", " \r\n\t{", "application/json", ""},
		{"", "", "[1]", "application/json", ""},
		{"", "", "x{", "application/octet-stream", ""},
		{"a\r\nHost: b", "", "{", "application/json", ""},
		{"téxt", "", "x", "application/octet-stream", ""},
		{"text/plain", "gzip", "", "text/plain", "gzip"},
		{"text/plain", "GZIP", "", "text/plain", "gzip"},
		{"text/plain", "deflate", "", "text/plain", "deflate"},
		{"text/plain", "br", "", "text/plain", "br"},
		{"text/plain", "zstd", "", "text/plain", "zstd"},
		{"text/plain", "identity", "", "text/plain", "identity"},
		{"text/plain", "lzma", "", "text/plain", ""},
		{"text/plain", "binary", "", "text/plain", ""},
		{"text/plain", "UTF-8", "", "text/plain; charset=utf-8", ""},
		{"application/json", "utf-8", "{}", "application/json; charset=utf-8", ""},
		{"", "utf-8", "{}", "application/json; charset=utf-8", ""},
		{"text/plain", "ISO-8859-1", "", "text/plain; charset=iso-8859-1", ""},
		{"text/plain; Charset=latin1", "utf-8", "", "text/plain; Charset=latin1", ""},
		{"text/plain", "utf-8\r\nHost: b", "", "text/plain", ""},
	}
	for _, c := range cases {
		typ, encoding := contentHeaders(c.contentType, c.contentEncoding, []byte(c.body), "auto")
		if typ != c.wantType || encoding != c.wantEncoding {
			t.Errorf("contentHeaders(%q, %q, %q) = %q, %q, want %q, %q",
				c.contentType, c.contentEncoding, c.body, typ, encoding, c.wantType, c.wantEncoding)
		}
	}
}
