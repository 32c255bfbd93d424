package proxy

import (
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestFitHeaders(t *testing.T) {
	big := strings.Repeat("x", 1000)
	base := func() table {
		return table{"small": "s", "big": big, "bigger": big + big, "x-rabbitonce-reason": "rejected", "x-rabbitonce-response": big, "x-rabbitonce-error": big}
	}
	for name, tt := range map[string]struct {
		room    int
		leftOut []string
		gone    []string
	}{
		"all fit":            {tableSize(base()), nil, nil},
		"the answer goes":    {tableSize(base()) - 1, nil, []string{"x-rabbitonce-response"}},
		"then the error":     {tableSize(base()) - 1100, nil, []string{"x-rabbitonce-response", "x-rabbitonce-error"}},
		"then the largest":   {tableSize(base()) - 2100, []string{"bigger"}, []string{"x-rabbitonce-response", "x-rabbitonce-error", "bigger"}},
		"the largest follow": {1000, []string{"bigger", "big"}, []string{"x-rabbitonce-response", "x-rabbitonce-error", "bigger", "big"}},
		"ours stay":          {10, []string{"bigger", "big", "small"}, []string{"x-rabbitonce-response", "x-rabbitonce-error", "bigger", "big", "small"}},
	} {
		t.Run(name, func(t *testing.T) {
			headers := base()
			if got := fitHeaders(headers, tt.room); !slices.Equal(got, tt.leftOut) {
				t.Errorf("left out %v, want %v", got, tt.leftOut)
			}
			for _, gone := range tt.gone {
				if _, ok := headers[gone]; ok {
					t.Errorf("%s is still there", gone)
				}
			}
			if headers["x-rabbitonce-reason"] != "rejected" {
				t.Error("the reason is gone")
			}
			if tt.room > 100 && tableSize(headers) > tt.room {
				t.Errorf("%d bytes, room for %d", tableSize(headers), tt.room)
			}
			if len(tt.leftOut) > 1 && headers["x-rabbitonce-left-out"] == nil {
				t.Error("it does not say what was left out")
			}
		})
	}
}

func TestTableSizeCountsEveryType(t *testing.T) {
	for want, value := range map[int]any{
		1: nil, 2: true, 3: int16(1), 5: int32(1), 9: int64(1), 8: "abc", 14: []any{nil, "abc"}, 12: amqp.Table{"a": int32(1)},
	} {
		if got := fieldSize(value); got != want {
			t.Errorf("%T has %d bytes, want %d", value, got, want)
		}
	}
}
