package testkit

import (
	"encoding/binary"
	"slices"
	"testing"
)

// frame makes an AMQP frame.
func frame(kind byte, payload []byte) []byte {
	f := []byte{kind, 0, 1}
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xCE)
}

func method(class, method uint16, arguments string) []byte {
	payload := binary.BigEndian.AppendUint16(nil, class)
	payload = binary.BigEndian.AppendUint16(payload, method)
	return frame(amqpMethodFrame, append(payload, arguments...))
}

// cut splits a stream into chunks of a size.
func cut(stream []byte, size int) [][]byte { return slices.Collect(slices.Chunk(stream, size)) }

func TestAMQPUnitsAtEveryChunkSize(t *testing.T) {
	ack := method(60, 80, "\x00\x00\x00\x00\x00\x00\x00\x07\x00")
	// A body that looks like an ack must not be taken for one.
	stream := slices.Concat([]byte("AMQP\x00\x00\x09\x01"), method(60, 40, "\x06orders"), frame(3, ack), ack)
	for size := 1; size <= len(stream); size++ {
		s := Protocol(AMQP).splitters()[ToServer]
		var acks, publishes, units int
		for _, chunk := range cut(stream, size) {
			for _, u := range s.split(chunk) {
				units++
				if BasicAck()(u) {
					acks++
				}
				if BasicPublish("orders")(u) {
					publishes++
				}
				if BasicPublish("others")(u) || BasicNack()(u) || BasicDeliver()(u) {
					t.Errorf("size %d: a match too many: %q", size, u.Data)
				}
				if u.start > len(chunk) {
					t.Errorf("size %d: start %d of %d", size, u.start, len(chunk))
				}
			}
		}
		if units != 4 || acks != 1 || publishes != 1 {
			t.Errorf("size %d: %d units, %d acks, %d publishes", size, units, acks, publishes)
		}
	}
}

func TestAMQPUnitStart(t *testing.T) {
	first, second := method(60, 80, "first"), method(60, 80, "second")
	s := Protocol(AMQP).splitters()[ToServer]
	units := s.split(slices.Concat(first, second[:5]))
	if len(units) != 1 || units[0].start != 0 {
		t.Fatalf("units %+v", units)
	}
	units = s.split(slices.Concat(second[5:], first))
	if len(units) != 2 || units[0].start != 0 || units[1].start != len(second)-5 {
		t.Fatalf("units %+v", units)
	}
}

func TestRedisOpAtEveryChunkSize(t *testing.T) {
	commands := "*1\r\n$4\r\nPING\r\n" +
		"*6\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$8\r\nkey:id-1\r\n$1\r\n1\r\n$5\r\nclaim\r\n" +
		"*6\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$5\r\nclaim\r\n$1\r\n1\r\n$5\r\nrenew\r\n" + // the key is no name
		"*10\r\n$4\r\neval\r\n$2\r\nab\r\n$1\r\n2\r\n$8\r\nkey:id-2\r\n$8\r\nkey:id-3\r\n$1\r\n1\r\n$5\r\nclaim\r\n$1\r\n2\r\n$5\r\nrenew\r\n$5\r\ntoken\r\n"
	replies := "+PONG\r\n" + ">2\r\n$1\r\na\r\n$1\r\nb\r\n" + // a push answers nothing
		"-NOSCRIPT No matching script\r\n" + ":0\r\n" +
		"*3\r\n:1\r\n$-1\r\n%1\r\n+a\r\n$3\r\nx\r\n\r\n"
	for size := 1; size <= len(commands); size++ {
		s := Protocol(RESP).splitters()
		var asked, answered []string
		for _, chunk := range cut([]byte(commands), size) {
			for _, u := range s[ToServer].split(chunk) {
				u.Direction = ToServer
				if RedisOp("claim")(u) {
					asked = append(asked, u.Command[3])
				}
				if RedisOp("claim", "id-3")(u) || RedisOp("claim", "token")(u) {
					t.Errorf("size %d: having is not looked at, or looked for in another operation", size)
				}
				if second := len(u.Command) > 2 && u.Command[2] == "2"; RedisOp("renew", "id-3", "token")(u) != second {
					t.Errorf("size %d: the second operation was found: %v", size, !second)
				}
			}
		}
		for _, chunk := range cut([]byte(replies), size) {
			for _, u := range s[ToClient].split(chunk) {
				u.Direction = ToClient
				if RedisOp("claim")(u) {
					answered = append(answered, u.Command[3])
				}
			}
		}
		if !slices.Equal(asked, []string{"key:id-1", "key:id-2"}) || !slices.Equal(answered, []string{"key:id-2"}) {
			t.Errorf("size %d: asked %q, answered %q", size, asked, answered)
		}
	}
}

func TestContainsSpansChunksOnce(t *testing.T) {
	s := Protocol(Raw).splitters()[ToServer]
	var matched []int
	for i, chunk := range []string{"..hel", "lo..", "....", "hello"} {
		for _, u := range s.split([]byte(chunk)) {
			if Contains("hello")(u) {
				matched = append(matched, i)
			}
		}
	}
	if !slices.Equal(matched, []int{1, 3}) {
		t.Errorf("matched in chunks %v, want 1 and 3", matched)
	}
}

func TestMalformedStreamsDoNotPanic(t *testing.T) {
	for _, text := range []string{"$x\r\n", "*-1\r\n", "*2\r\n:1\r\n", "$99\r\nshort", "*1\r\n*1\r\n$1\r\na\r\n", "\r\n", "\x01"} {
		for _, protocol := range []Protocol{Raw, AMQP, RESP} {
			for _, s := range protocol.splitters() {
				for _, u := range s.split([]byte(text)) {
					RedisOp("a")(u)
					BasicAck()(u)
					Contains("a")(u)
				}
			}
		}
	}
}
