package dedup

import (
	"encoding/binary"
	"errors"
)

// The stored form of a record, big endian, the same in scripts/protocol.lua:
//
//	head        state 1, attempts 2, deferred 2, unknowns 1, first claimed 6, fingerprint 8
//	processing  head, token 16, lease until 6, deadline 6, undo 1 [, previous record]
//	waiting     head, not before 6
//	done        head, at 6, status 2
//	dead        head, reason 1, dead-id 8, at 6
//
// The state is p, w, d or x; in upper case when an outcome was ever unknown.
// Times are milliseconds since 1970. A done record, by far the most frequent,
// has 28 bytes: the last length that Redis keeps in an allocation of 48.
const (
	headSize       = 20
	processingSize = headSize + 29
	waitingSize    = headSize + 6
	doneSize       = headSize + 8
	deadSize       = headSize + 15
)

// errCorrupt is a value that is no record: another program's key, or a
// version this one does not know. It is an error and never a verdict.
var errCorrupt = errors.New("the key holds no rabbitonce record; use a DEDUP_PREFIX of its own")

const upper = 'a' - 'A'

func (s State) letter() byte {
	switch s {
	case StateProcessing:
		return 'p'
	case StateWaiting:
		return 'w'
	case StateDone:
		return 'd'
	default:
		return 'x'
	}
}

// appendRecord appends the stored form.
func appendRecord(b []byte, r *record) []byte {
	letter := r.state.letter()
	if r.everUnknown {
		letter -= upper
	}
	b = append(b, letter)
	b = binary.BigEndian.AppendUint16(b, r.attempts)
	b = binary.BigEndian.AppendUint16(b, r.deferred)
	b = append(b, r.unknowns)
	b = appendTime(b, r.first)
	b = binary.BigEndian.AppendUint64(b, uint64(r.fingerprint))
	switch r.state {
	case StateProcessing:
		b = append(b, r.token[:]...)
		b = appendTime(b, r.leaseUntil)
		b = appendTime(b, r.deadline)
		b = append(b, byte(r.undo))
		if r.undo == undoRestore {
			b = appendRecord(b, r.previous)
		}
	case StateWaiting:
		b = appendTime(b, r.notBefore)
	case StateDone:
		b = appendTime(b, r.at)
		b = binary.BigEndian.AppendUint16(b, r.status)
	case StateDead:
		b = append(b, byte(r.reason))
		b = append(b, r.deadID[:]...)
		b = appendTime(b, r.at)
	}
	return b
}

// appendTime writes 48 bits of milliseconds.
func appendTime(b []byte, ms int64) []byte {
	return append(b, byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms))
}

func readTime(b string) int64 {
	return int64(b[0])<<40 | int64(b[1])<<32 | int64(b[2])<<24 | int64(b[3])<<16 | int64(b[4])<<8 | int64(b[5])
}

// parseRecord reads the stored form; anything else is errCorrupt.
func parseRecord(text string) (*record, error) {
	r, err := parseFlat(text)
	if err != nil || r.state != StateProcessing {
		return r, err
	}
	rest := text[processingSize:]
	if r.undo != undoRestore {
		if r.undo > undoNone || rest != "" {
			return nil, errCorrupt
		}
		return r, nil
	}
	if r.previous, err = parseFlat(rest); err != nil {
		return nil, err
	}
	nested := r.previous.state == StateProcessing
	if nested && (r.previous.undo != undoNone || len(rest) != processingSize) {
		return nil, errCorrupt
	}
	return r, nil
}

// parseFlat reads a record without what a processing record's undo restores.
func parseFlat(text string) (*record, error) {
	if len(text) < headSize {
		return nil, errCorrupt
	}
	r := &record{
		everUnknown: text[0] < 'a',
		attempts:    uint16(text[1])<<8 | uint16(text[2]),
		deferred:    uint16(text[3])<<8 | uint16(text[4]),
		unknowns:    text[5],
		first:       readTime(text[6:]),
	}
	for _, c := range []byte(text[12:headSize]) {
		r.fingerprint = r.fingerprint<<8 | Fingerprint(c)
	}
	body := text[headSize:]
	switch letter := text[0] | upper; {
	case letter == 'p' && len(text) >= processingSize:
		r.state = StateProcessing
		copy(r.token[:], body)
		r.leaseUntil = readTime(body[16:])
		r.deadline = readTime(body[22:])
		r.undo = undo(body[28])
	case letter == 'w' && len(text) == waitingSize:
		r.state = StateWaiting
		r.notBefore = readTime(body)
	case letter == 'd' && len(text) == doneSize:
		r.state = StateDone
		r.at = readTime(body)
		r.status = uint16(body[6])<<8 | uint16(body[7])
	case letter == 'x' && len(text) == deadSize:
		r.state = StateDead
		r.reason = Reason(body[0])
		copy(r.deadID[:], body[1:])
		r.at = readTime(body[9:])
	default:
		return nil, errCorrupt
	}
	return r, nil
}
