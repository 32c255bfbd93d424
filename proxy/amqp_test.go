package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestPlainHeaders(t *testing.T) {
	got := plainHeaders(amqp.Table{
		"text": "x", "table": amqp.Table{"inner": amqp.Table{"n": int32(1)}}, "list": []any{amqp.Table{"a": nil}, amqp.Decimal{Scale: 2, Value: 1999}},
	})
	want := map[string]any{
		"text": "x", "table": map[string]any{"inner": map[string]any{"n": int32(1)}}, "list": []any{map[string]any{"a": nil}, "19.99"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestDecimalText(t *testing.T) {
	for want, d := range map[string]amqp.Decimal{
		"0": {}, "19.99": {Scale: 2, Value: 1999}, "-19.99": {Scale: 2, Value: -1999}, "0.05": {Scale: 2, Value: 5}, "-0.005": {Scale: 3, Value: -5},
		"7": {Value: 7}, "-2147483648": {Value: -2147483648},
	} {
		if got := decimalText(d); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
}
