package contract

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// published is the time that messages say they were published at: AMQP knows seconds only.
func published() time.Time { return time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC) }

// everyType holds a value of each type that an AMQP header can have.
func everyType() amqp.Table {
	return amqp.Table{
		"nothing": nil,
		"true":    true,
		"false":   false,
		"int8":    int8(math.MinInt8),
		"uint8":   uint8(math.MaxUint8),
		"int16":   int16(math.MinInt16),
		"uint16":  uint16(math.MaxUint16),
		"int32":   int32(math.MinInt32),
		"uint32":  uint32(math.MaxUint32),
		"int64":   int64(math.MinInt64),
		"float32": float32(1.5),
		"float64": 0.1,
		"decimal": amqp.Decimal{Scale: 2, Value: 1995},
		"string":  "grün 100%",
		"empty":   "",
		"bytes":   []byte{0x00, 0xff},
		"time":    published(),
		"array":   []any{nil, int32(1), "two", []byte{0x00, 0xff}, []any{true}, amqp.Table{"in": "array"}},
		"table": amqp.Table{
			"nothing": nil, "number": int64(math.MaxInt64), "decimal": amqp.Decimal{Scale: 3, Value: 5},
			"deeper": amqp.Table{"time": published(), "list": []any{}},
		},
		"under_score": "kept", "with space": int16(7), "ünïcode": "☃",
	}
}

// everyProperty is a message with all 13 properties (the header table is one) and a body of its own that is no text.
func everyProperty(n int) amqp.Publishing {
	headers := everyType()
	headers["number"] = int32(n)
	sum := sha256.Sum256(fmt.Append(nil, n))
	return amqp.Publishing{
		Headers: headers, ContentType: "application/x-order", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent,
		Priority: uint8(n % 10), CorrelationId: fmt.Sprintf("correlation-%d", n), ReplyTo: "replies", Expiration: "3600000",
		MessageId: fmt.Sprintf("message-%d", n), Timestamp: published().Add(time.Duration(n) * time.Second),
		Type: "order.created", UserId: "guest", AppId: "shop",
		Body: sum[:n%(len(sum)+1)],
	}
}
