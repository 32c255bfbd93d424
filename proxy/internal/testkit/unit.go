package testkit

import "bytes"

// Protocol says how a FaultProxy finds the messages in a stream.
type Protocol uint8

const (
	Raw  Protocol = iota // no messages: each chunk, as it was read
	AMQP                 // AMQP 0-9-1 frames
	RESP                 // Redis commands and replies
)

// Unit is one message of a protocol: a frame, a command, a reply, or a raw chunk.
type Unit struct {
	Direction Direction
	Data      []byte   // the whole message; under Raw, with the end of what came before
	Command   []string // RESP: the command's words, or those of the command that this reply answers

	fresh int // Data before this was forwarded as part of an earlier unit (Raw)
	start int // where in the chunk the unit begins; 0 when it began in an earlier one
}

// Fresh is the part of Data that was in no earlier unit.
func (u Unit) Fresh() []byte { return u.Data[u.fresh:] }

// splitter finds the units that a chunk of one direction completes. Units are valid until the next call.
type splitter interface {
	split(chunk []byte) []Unit
}

// splitters returns a pair by Direction for one connection.
func (p Protocol) splitters() [2]splitter {
	switch p {
	case AMQP:
		return [2]splitter{&messageSplitter{length: amqpLength}, &messageSplitter{length: amqpLength}}
	case RESP:
		return respSplitters()
	default:
		return [2]splitter{&rawSplitter{}, &rawSplitter{}}
	}
}

// Contains matches a message that holds the bytes. Under Raw they may span chunks, of which only the last is held.
func Contains(pattern string) Match {
	return func(u Unit) bool {
		return bytes.Contains(u.Data[max(0, u.fresh-len(pattern)+1):], []byte(pattern))
	}
}

// rawMemory is how much of the past a raw chunk is given, and so the longest pattern that can span chunks.
const rawMemory = 4 << 10

type rawSplitter struct {
	past []byte
}

func (s *rawSplitter) split(chunk []byte) []Unit {
	fresh := len(s.past)
	data := append(s.past, chunk...)
	s.past = bytes.Clone(data[max(0, len(data)-rawMemory):])
	return []Unit{{Data: data, fresh: fresh}}
}

// messageSplitter collects a stream until a message is whole. length returns the length of the message that the bytes
// begin with, or 0 when they do not tell it yet.
type messageSplitter struct {
	length  func([]byte) int
	pending []byte // the message that is not whole yet
}

func (s *messageSplitter) split(chunk []byte) []Unit {
	data := append(s.pending, chunk...)
	earlier := len(s.pending)
	var units []Unit
	at := 0
	for at < len(data) {
		n := s.length(data[at:])
		if n == 0 || at+n > len(data) {
			break
		}
		units = append(units, Unit{Data: data[at : at+n], start: max(0, at-earlier)})
		at += n
	}
	s.pending = bytes.Clone(data[at:])
	return units
}
