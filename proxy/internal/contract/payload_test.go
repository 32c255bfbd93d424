package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestBodies sends bodies that something on the way could change, cut or refuse, and copies of each.
func TestBodies(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	all := map[string][]byte{
		"empty":           {},
		"one byte":        {0},
		"every byte":      every,
		"line ends":       []byte("a\r\nb\nc\rd\r\n\r\n"),
		"byte order mark": []byte("\xef\xbb\xbf{}"),
		"not UTF-8":       []byte("caf\xe9"),
		"10 MB":           bytes.Repeat([]byte("0123456789\x00\xff"), 10_000_000/12),
	}
	b := newBench(t, nil)
	for id, body := range all {
		b.publish(amqp.Publishing{MessageId: id, Body: body})
	}
	b.waitPosts(len(all))
	for id, body := range all {
		b.publish(amqp.Publishing{MessageId: id, Body: body})
	}
	n := float64(len(all))
	b.waitOutcomes(map[string]float64{"done": n, "duplicate": n})
	for id, body := range all {
		posts := b.service.Journal.ByKey(id)
		if len(posts) != 1 {
			t.Errorf("%s: %d POSTs", id, len(posts))
			continue
		}
		post := posts[0]
		if post.ReadError != nil || post.BodyLength != len(body) || post.BodySHA256 != hexDigest(string(body)) {
			t.Errorf("%s: %d bytes arrived of %d, or others (%v)", id, post.BodyLength, len(body), post.ReadError)
		}
	}
	b.finish()
}

// TestContentType tells the service what the body is, also when the publisher does not say it in HTTP's terms.
func TestContentType(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		message               amqp.Publishing
		contentType, encoding string
	}{
		"as published":     {amqp.Publishing{ContentType: "text/csv; header=present"}, "text/csv; header=present", ""},
		"none":             {amqp.Publishing{Body: []byte("a,b")}, "application/octet-stream", ""},
		"none, JSON":       {amqp.Publishing{Body: []byte(" \n[1]")}, "application/json", ""},
		"illegal":          {amqp.Publishing{ContentType: "text/\r\nX: 1", Body: []byte("{}")}, "application/json", ""},
		"compressed":       {amqp.Publishing{ContentType: "text/plain", ContentEncoding: "gzip", Body: []byte("not really")}, "text/plain", "gzip"},
		"charset":          {amqp.Publishing{ContentType: "text/plain", ContentEncoding: "UTF-8"}, "text/plain; charset=utf-8", ""},
		"unknown encoding": {amqp.Publishing{ContentType: "text/plain", ContentEncoding: "aes"}, "text/plain", ""},
	}
	b := newBench(t, nil)
	for id, c := range cases {
		c.message.MessageId = id
		b.publish(c.message)
	}
	b.waitOutcomes(map[string]float64{"done": float64(len(cases))})
	for _, e := range b.service.Journal.Entries() {
		want, contentType, encoding := cases[e.Key], e.Header.Get("Content-Type"), e.Header.Get("Content-Encoding")
		if contentType != want.contentType || encoding != want.encoding {
			t.Errorf("%s: Content-Type %q, Content-Encoding %q; want %q, %q", e.Key, contentType, encoding, want.contentType, want.encoding)
		}
	}
	b.finish()
}
