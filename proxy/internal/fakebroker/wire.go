package fakebroker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errShort = errors.New("a field ends after the end of its frame")

// decoder reads the fields of a frame (https://www.rabbitmq.com/amqp-0-9-1-errata#section_3 for tables). The first error stays.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.data) {
		if d.err == nil {
			d.err = errShort
		}
		return make([]byte, min(max(n, 0), 8))
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken
}

func (d *decoder) octet() byte      { return d.take(1)[0] }
func (d *decoder) short() uint16    { return binary.BigEndian.Uint16(d.take(2)) }
func (d *decoder) long() uint32     { return binary.BigEndian.Uint32(d.take(4)) }
func (d *decoder) llong() uint64    { return binary.BigEndian.Uint64(d.take(8)) }
func (d *decoder) shortstr() string { return string(d.take(int(d.octet()))) }
func (d *decoder) longstr() string  { return string(d.take(int(d.long()))) }

func (d *decoder) table() amqp.Table {
	inner := decoder{data: []byte(d.longstr())}
	t := amqp.Table{}
	for len(inner.data) > 0 && inner.err == nil {
		name := inner.shortstr()
		t[name] = inner.value()
	}
	if inner.err != nil {
		d.err = inner.err
	}
	return t
}

func (d *decoder) array() []any {
	inner := decoder{data: []byte(d.longstr())}
	all := []any{}
	for len(inner.data) > 0 && inner.err == nil {
		all = append(all, inner.value())
	}
	if inner.err != nil {
		d.err = inner.err
	}
	return all
}

func (d *decoder) value() any {
	switch kind := d.octet(); kind {
	case 't':
		return d.octet() != 0
	case 'b':
		return int8(d.octet())
	case 'B':
		return d.octet()
	case 's':
		return int16(d.short())
	case 'u':
		return d.short()
	case 'I':
		return int32(d.long())
	case 'i':
		return d.long()
	case 'l':
		return int64(d.llong())
	case 'f':
		return math.Float32frombits(d.long())
	case 'd':
		return math.Float64frombits(d.llong())
	case 'D':
		return amqp.Decimal{Scale: d.octet(), Value: int32(d.long())}
	case 'S':
		return d.longstr()
	case 'x':
		return []byte(d.longstr())
	case 'T':
		return time.Unix(int64(d.llong()), 0)
	case 'F':
		return d.table()
	case 'A':
		return d.array()
	case 'V':
		return nil
	default:
		d.err = fmt.Errorf("a field has the unknown type %q", kind)
		return nil
	}
}

// encoder writes the fields of a frame.
type encoder struct{ data []byte }

func (e *encoder) octet(v byte)   { e.data = append(e.data, v) }
func (e *encoder) short(v uint16) { e.data = binary.BigEndian.AppendUint16(e.data, v) }
func (e *encoder) long(v uint32)  { e.data = binary.BigEndian.AppendUint32(e.data, v) }
func (e *encoder) llong(v uint64) { e.data = binary.BigEndian.AppendUint64(e.data, v) }

func (e *encoder) flag(v bool) {
	if v {
		e.octet(1)
		return
	}
	e.octet(0)
}

// shortstr cuts what is too long, as the broker does with its own words.
func (e *encoder) shortstr(v string) {
	v = v[:min(len(v), 255)]
	e.octet(byte(len(v)))
	e.data = append(e.data, v...)
}

func (e *encoder) longstr(v string) {
	e.long(uint32(len(v)))
	e.data = append(e.data, v...)
}

func (e *encoder) table(t amqp.Table) {
	var inner encoder
	for _, name := range slices.Sorted(maps.Keys(t)) {
		inner.shortstr(name)
		inner.value(t[name])
	}
	e.longstr(string(inner.data))
}

func (e *encoder) typed(kind byte) *encoder {
	e.octet(kind)
	return e
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case bool:
		e.typed('t').flag(v)
	case int8:
		e.typed('b').octet(byte(v))
	case byte:
		e.typed('B').octet(v)
	case int16:
		e.typed('s').short(uint16(v))
	case uint16:
		e.typed('u').short(v)
	case int32:
		e.typed('I').long(uint32(v))
	case uint32:
		e.typed('i').long(v)
	case int64:
		e.typed('l').llong(uint64(v))
	case float32:
		e.typed('f').long(math.Float32bits(v))
	case float64:
		e.typed('d').llong(math.Float64bits(v))
	case amqp.Decimal:
		e.typed('D').octet(v.Scale)
		e.long(uint32(v.Value))
	case string:
		e.typed('S').longstr(v)
	case []byte:
		e.typed('x').longstr(string(v))
	case time.Time:
		e.typed('T').llong(uint64(v.Unix()))
	case amqp.Table:
		e.typed('F').table(v)
	case []any:
		var inner encoder
		for _, one := range v {
			inner.value(one)
		}
		e.typed('A').longstr(string(inner.data))
	default:
		e.octet('V')
	}
}
