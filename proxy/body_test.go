package proxy

import (
	"errors"
	"testing"
)

func TestBodySource(t *testing.T) {
	massTransit := `{"messageId":"a","messageType":["urn:message:Shop:Order"],` + "\n" + `  "message" : {"id": 1.0, "text":"\u00e9 " } ,"host":{}}`
	celery := `[["order-1", 9007199254740993], {"retry": false}, {"callbacks": null, "chain": null}]`
	cases := map[string]struct{ source, body, want string }{
		"raw":                 {"raw", "\x00\xff", "\x00\xff"},
		"MassTransit":         {"json:/message", massTransit, `{"id": 1.0, "text":"\u00e9 " }`},
		"Celery, arguments":   {"json:/0", celery, `["order-1", 9007199254740993]`},
		"Celery, first":       {"json:/0/0", celery, `"order-1"`},
		"a number as written": {"json:/0/1", celery, "9007199254740993"},
		"null":                {"json:/2/chain", celery, "null"},
		"false":               {"json:/1/retry", celery, "false"},
		"escaped name":        {"json:/a~1b/~0", `{"a/b":{"~":[ ]}}`, "[ ]"},
		"empty name":          {"json:/", `{"":0}`, "0"},
	}
	for name, c := range cases {
		var b BodySource
		if err := b.EnvDecode(c.source); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, typ, err := b.of([]byte(c.body), "application/vnd.masstransit+json", "auto")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if wantType := "application/json"; c.source != "raw" && typ != wantType || c.source == "raw" && typ == wantType {
			t.Errorf("%s: type %s", name, typ)
		}
	}
	var part BodySource
	_ = part.EnvDecode("json:/message")
	if _, typ, err := part.of([]byte(massTransit), "application/vnd.masstransit+json", "application/x-order"); err != nil || typ != "application/x-order" {
		t.Errorf("with FORWARD_CONTENT_TYPE: type %s, %v", typ, err)
	}
	for name, body := range map[string]string{"no JSON": "order", "absent": `{"a":1}`, "twice": `{"message":1,"message":2}`, "empty": "", "scalar": "1", "not UTF-8": "{\"message\":\"\xff\"}"} {
		var b BodySource
		_ = b.EnvDecode("json:/message")
		if _, _, err := b.of([]byte(body), "", "auto"); !errors.Is(err, errNoPart) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"json", "json:message", "json:/a~2", "xml:/a", "RAW"} {
		if err := new(BodySource).EnvDecode(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
