package proxy

import (
	"fmt"
	"strings"
)

// plainHeaders turns AMQP header values into plain Go values: nested tables become maps, decimals their text.
func plainHeaders(t table) map[string]any {
	m := make(map[string]any, len(t))
	for k, v := range t {
		m[k] = plainValue(v)
	}
	return m
}

func plainValue(v any) any {
	switch v := v.(type) {
	case table:
		return plainHeaders(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plainValue(e)
		}
		return list
	case decimal:
		return decimalText(v)
	}
	return v
}

func decimalText(d decimal) string {
	sign, digits := "", fmt.Sprint(d.Value)
	if d.Value < 0 {
		sign, digits = "-", digits[1:]
	}
	scale := int(d.Scale)
	if scale == 0 {
		return sign + digits
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}
