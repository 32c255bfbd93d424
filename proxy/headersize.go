package proxy

import (
	"strings"
	"time"
)

// The headers of a message travel in one frame, whose size the broker limits. A message can come with headers that
// fill it, and what is added here then has no room.

// otherProperties is what a header frame holds beside the headers: eight short strings and some numbers.
const otherProperties = 4 << 10

// headerRoom is how many bytes the headers of a message may have on the publisher's connection.
func (p *publisher) headerRoom() int { return headerRoom(p.broker.frame.Load()) }

// headerRoom is how many bytes headers may have in a frame.
func headerRoom(frame int64) int {
	if frame == 0 {
		frame = defaultFrameSize
	}
	return int(frame) - otherProperties
}

// tableSize is how many bytes a table has on the wire (https://www.rabbitmq.com/amqp-0-9-1-errata#section_3).
func tableSize(t table) int {
	size := 4
	for name, value := range t {
		size += 1 + len(name) + fieldSize(value)
	}
	return size
}

// fieldSize counts the type's letter and the value.
func fieldSize(value any) int {
	switch v := value.(type) {
	case string:
		return 5 + len(v)
	case []byte:
		return 5 + len(v)
	case table:
		return 1 + tableSize(v)
	case []any:
		size := 5
		for _, e := range v {
			size += fieldSize(e)
		}
		return size
	case nil:
		return 1
	case bool, int8, uint8:
		return 2
	case int16, uint16:
		return 3
	case int32, uint32, float32, int:
		return 5
	case time.Time, int64, uint64, float64:
		return 9
	}
	return 9 // a decimal has 6
}

// fitHeaders makes headers fit into room: it leaves out the beginning of the answer, then the error, then the
// message's own headers, the largest first, and says which in x-rabbitonce-left-out. It returns the names of the
// message's own that it left out.
func fitHeaders(headers table, room int) (leftOut []string) {
	for _, name := range []string{"", "response", "error"} {
		delete(headers, headerPrefix+name)
		if tableSize(headers) <= room {
			return nil
		}
	}
	const note = 512 // room for the list
	for size := tableSize(headers); size > room-note; size = tableSize(headers) {
		name := largestOwn(headers)
		if name == "" {
			break
		}
		delete(headers, name)
		leftOut = append(leftOut, name)
	}
	if len(leftOut) > 0 {
		headers[headerPrefix+"left-out"] = shortenTo(strings.Join(leftOut, ","), note-64)
	}
	return leftOut
}

// largestOwn is the largest header that the message brought itself.
func largestOwn(headers table) string {
	largest, most := "", 0
	for name, value := range headers {
		size := len(name) + fieldSize(value)
		if !strings.HasPrefix(name, headerPrefix) && (size > most || size == most && name < largest) {
			largest, most = name, size
		}
	}
	return largest
}
