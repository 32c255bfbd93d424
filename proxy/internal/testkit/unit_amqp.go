package testkit

import (
	"bytes"
	"encoding/binary"
)

// AMQP 0-9-1 frames, from section 4.2.3 of the specification: type, channel (2 bytes), size (4 bytes), payload, end
// mark. The client's first 8 bytes are a header of another shape that begins with "AMQP".
const (
	amqpHeader      = 8
	amqpFrameHead   = 7
	amqpMethodFrame = 1
	amqpFrameEnd    = 0xCE
)

func amqpLength(data []byte) int {
	switch {
	case data[0] == 'A':
		return amqpHeader
	case len(data) < amqpFrameHead:
		return 0
	default:
		return amqpFrameHead + int(binary.BigEndian.Uint32(data[3:])) + 1
	}
}

// AMQPMethod matches a method frame by class and method, and by words that its arguments hold (an exchange, a routing
// key, a consumer tag).
func AMQPMethod(class, method uint16, words ...string) Match {
	return func(u Unit) bool {
		if len(u.Data) < amqpFrameHead+4 || u.Data[0] != amqpMethodFrame {
			return false
		}
		payload := u.Data[amqpFrameHead : len(u.Data)-1]
		if binary.BigEndian.Uint16(payload) != class || binary.BigEndian.Uint16(payload[2:]) != method {
			return false
		}
		for _, word := range words {
			if !bytes.Contains(payload[4:], []byte(word)) {
				return false
			}
		}
		return true
	}
}

// BasicPublish matches a publish whose arguments hold the words, such as the routing key.
func BasicPublish(words ...string) Match { return AMQPMethod(60, 40, words...) }

// BasicDeliver matches a delivery whose arguments hold the words.
func BasicDeliver(words ...string) Match { return AMQPMethod(60, 60, words...) }

// BasicAck matches an acknowledgement: of a delivery when ToServer, of a publish (a confirm) when ToClient.
func BasicAck() Match { return AMQPMethod(60, 80) }

// BasicNack matches a negative acknowledgement in either direction.
func BasicNack() Match { return AMQPMethod(60, 120) }

// AMQPMethodFrame is a method frame on the channel of another frame, to be inserted before that one. The arguments are
// encoded already.
func AMQPMethodFrame(on []byte, class, method uint16, arguments []byte) []byte {
	frame := []byte{amqpMethodFrame, on[1], on[2]}
	frame = binary.BigEndian.AppendUint32(frame, uint32(4+len(arguments)))
	frame = binary.BigEndian.AppendUint16(frame, class)
	frame = binary.BigEndian.AppendUint16(frame, method)
	frame = append(frame, arguments...)
	return append(frame, amqpFrameEnd)
}
