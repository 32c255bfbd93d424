package proxy

import (
	"encoding/binary"
	"io"
	"net"
)

// Some clients write large numbers in headers as type L (py-amqp, and with it Celery and Kombu, does so for what does
// not fit into 32 bits). RabbitMQ knows that type and writes l itself: both are 64 bits, signed. But up to 3.x it hands
// a message out with the header bytes of its publisher as long as it has no reason to write them anew, and the AMQP
// library gives up the whole connection on an L (https://www.rabbitmq.com/amqp-0-9-1-errata#section_3).

// longLongConn is a connection from which header values of type L are read as type l. Frames of any other kind pass as
// they are. Only one goroutine may read.
type longLongConn struct {
	net.Conn
	buffer     []byte
	begin, end int // what of buffer is read from Conn and not handed on
	pass       int // bytes of the current frame that are still to be handed on
}

const (
	frameHead     = 7 // type, channel, size
	contentHeader = 2 // the type of the frame that holds the properties
	// longestHeader bounds the frames that are looked into; the broker agrees on much smaller ones.
	longestHeader = 1 << 20
)

func newLongLongConn(c net.Conn) *longLongConn {
	return &longLongConn{Conn: c, buffer: make([]byte, 8<<10)}
}

func (c *longLongConn) Read(p []byte) (int, error) {
	if c.pass == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	p = p[:min(len(p), c.pass)]
	n, err := 0, error(nil)
	if c.begin < c.end {
		n = copy(p, c.buffer[c.begin:c.end])
		c.begin += n
	} else {
		n, err = c.Conn.Read(p)
	}
	c.pass -= n
	return n, err
}

// nextFrame finds out how long the next frame is. One that holds properties is read whole, and translated.
func (c *longLongConn) nextFrame() error {
	if err := c.fill(frameHead); err != nil {
		return err
	}
	head := c.buffer[c.begin:]
	size := int(binary.BigEndian.Uint32(head[3:])) + 1 // with the mark of its end
	if head[0] == contentHeader && size <= longestHeader {
		if err := c.fill(frameHead + size); err != nil {
			return err
		}
		translateProperties(c.buffer[c.begin+frameHead : c.begin+frameHead+size-1])
	}
	c.pass = frameHead + size
	return nil
}

// fill reads until n bytes are in the buffer.
func (c *longLongConn) fill(n int) error {
	have := c.end - c.begin
	if have >= n {
		return nil
	}
	if c.begin+n > len(c.buffer) {
		target := c.buffer
		if n > len(target) {
			target = make([]byte, n)
		}
		copy(target, c.buffer[c.begin:c.end])
		c.buffer, c.begin, c.end = target, 0, have
	}
	got, err := io.ReadAtLeast(c.Conn, c.buffer[c.end:], n-have)
	c.end += got
	if err == io.EOF && c.end > c.begin {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// translateProperties makes every L in the header table of a content header's payload an l. What it does not understand
// it leaves alone: the library will say what is wrong with it. The headers come after two other properties, each there
// when its bit is set (https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf, 4.2.6.1).
func translateProperties(payload []byte) {
	const flagsAt, moreFlags = 12, 1
	const hasType, hasEncoding, hasHeaders = 1 << 15, 1 << 14, 1 << 13
	if len(payload) < flagsAt+2 {
		return
	}
	flags := binary.BigEndian.Uint16(payload[flagsAt:])
	if flags&hasHeaders == 0 || flags&moreFlags != 0 {
		return
	}
	rest, ok := payload[flagsAt+2:], true
	for _, before := range []uint16{hasType, hasEncoding} {
		if ok && flags&before != 0 {
			rest, ok = skipShort(rest)
		}
	}
	if table, _, found := longBlock(rest); ok && found {
		translateTable(table, 0)
	}
}

// deepest is how deeply tables and lists are followed: the library follows no further.
const deepest = 32

func translateTable(table []byte, depth int) bool {
	for ok := true; len(table) > 0; {
		if table, ok = skipShort(table); !ok {
			return false
		}
		if table, ok = translateValue(table, depth); !ok {
			return false
		}
	}
	return true
}

// translateValue returns what follows the value that b begins with.
func translateValue(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 || depth > deepest {
		return nil, false
	}
	kind, rest := b[0], b[1:]
	if kind == 'L' {
		b[0] = 'l'
	}
	switch kind {
	case 'S', 'x':
		_, rest, ok = longBlock(rest)
		return rest, ok
	case 'A', 'F':
		inner, after, ok := longBlock(rest)
		if !ok {
			return nil, false
		}
		if kind == 'F' {
			return after, translateTable(inner, depth+1)
		}
		for len(inner) > 0 {
			if inner, ok = translateValue(inner, depth+1); !ok {
				return nil, false
			}
		}
		return after, true
	}
	size, known := fixedSize(kind)
	if !known || len(rest) < size {
		return nil, false
	}
	return rest[size:], true
}

// fixedSize is how many bytes a value of a type has that says nothing of its length.
func fixedSize(kind byte) (size int, known bool) {
	switch kind {
	case 'V':
		return 0, true
	case 't', 'b', 'B':
		return 1, true
	case 's', 'u':
		return 2, true
	case 'I', 'i', 'f':
		return 4, true
	case 'D':
		return 5, true
	case 'l', 'L', 'd', 'T':
		return 8, true
	}
	return 0, false
}

// skipShort returns what follows a short string.
func skipShort(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, false
	}
	return b[1+int(b[0]):], true
}

// longBlock returns what stands in a block that begins with its length in four bytes, and what follows it.
func longBlock(b []byte) (inner, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := binary.BigEndian.Uint32(b)
	if uint64(size) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+size], b[4+size:], true
}
