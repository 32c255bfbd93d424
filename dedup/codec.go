package dedup

import (
	"encoding/binary"
	"errors"
	"math"
)

// The stored form of a record, big endian, the same in scripts/protocol.lua:
//
//	head        state 1, first claimed 5, fingerprint 6
//	counters    attempts 2, deferred 2, unknowns 1
//	processing  head, counters, token 16, lease until 5, deadline 5, undo 1 [, previous record]
//	waiting     head, counters, not before 5
//	done        head, at 5, status 2, attempts 1 or counters
//	dead        head, counters, reason 1, dead-id 8, at 5, not before 5
//
// The state is p, w, d or x; in upper case when an outcome was ever unknown.
//
// A time is the last 40 bits of the milliseconds since 1970: it is the one
// nearest to now that ends in them, which is right for 17 years to either side.
//
// A done record, by far the most frequent, has 20 bytes when the attempts fit
// one byte and the other counters are zero: the last length that Redis keeps in
// an allocation of 40 bytes, or of 48 where the allocator has no such size.
const (
	headSize       = 12
	countersSize   = 5
	processingSize = headSize + countersSize + 27
	waitingSize    = headSize + countersSize + 5
	doneSize       = headSize + 7 + 1
	longDoneSize   = headSize + 7 + countersSize
	deadSize       = headSize + countersSize + 19
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
	b = appendTime(b, r.first)
	b = append(b, r.fingerprint.bytes()...)
	if r.state == StateDone {
		b = appendTime(b, r.at)
		b = binary.BigEndian.AppendUint16(b, r.status)
		if r.fewCounters() {
			return append(b, byte(r.attempts))
		}
		return appendCounters(b, r)
	}
	b = appendCounters(b, r)
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
	case StateDead:
		b = append(b, byte(r.reason))
		b = append(b, r.deadID[:]...)
		b = appendTime(b, r.at)
		b = appendTime(b, r.notBefore)
	}
	return b
}

// fewCounters tells whether a done record needs one byte for its counters.
func (r *record) fewCounters() bool {
	return r.attempts <= math.MaxUint8 && r.deferred == 0 && r.unknowns == 0
}

func appendCounters(b []byte, r *record) []byte {
	b = binary.BigEndian.AppendUint16(b, r.attempts)
	b = binary.BigEndian.AppendUint16(b, r.deferred)
	return append(b, r.unknowns)
}

func (r *record) readCounters(b string) {
	r.attempts = uint16(b[0])<<8 | uint16(b[1])
	r.deferred = uint16(b[2])<<8 | uint16(b[3])
	r.unknowns = b[4]
}

func appendTime(b []byte, ms int64) []byte {
	return append(b, byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms))
}

// readTime returns the time nearest to now that ends in the 40 bits.
func readTime(b string, now int64) int64 {
	bits := int64(b[0])<<32 | int64(b[1])<<24 | int64(b[2])<<16 | int64(b[3])<<8 | int64(b[4])
	const unused = 64 - 40
	return now + (bits-now)<<unused>>unused // the shift back extends the sign
}

// parseRecord reads the stored form; anything else is errCorrupt.
func parseRecord(text string, now int64) (*record, error) {
	r, err := parseFlat(text, now)
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
	if r.previous, err = parseFlat(rest, now); err != nil {
		return nil, err
	}
	nested := r.previous.state == StateProcessing
	if nested && (r.previous.undo != undoNone || len(rest) != processingSize) {
		return nil, errCorrupt
	}
	return r, nil
}

// parseFlat reads a record without what a processing record's undo restores.
func parseFlat(text string, now int64) (*record, error) {
	if len(text) < headSize+countersSize {
		return nil, errCorrupt
	}
	r := &record{everUnknown: text[0] < 'a', first: readTime(text[1:], now)}
	for _, c := range []byte(text[6:headSize]) {
		r.fingerprint = r.fingerprint<<8 | Fingerprint(c)
	}
	body := text[headSize+countersSize:]
	switch letter := text[0] | upper; {
	case letter == 'p' && len(text) >= processingSize:
		r.state = StateProcessing
		copy(r.token[:], body)
		r.leaseUntil = readTime(body[16:], now)
		r.deadline = readTime(body[21:], now)
		r.undo = undo(body[26])
	case letter == 'w' && len(text) == waitingSize:
		r.state = StateWaiting
		r.notBefore = readTime(body, now)
	case letter == 'd':
		return parseDone(r, text[headSize:], now)
	case letter == 'x' && len(text) == deadSize:
		r.state = StateDead
		r.reason = Reason(body[0])
		copy(r.deadID[:], body[1:])
		r.at = readTime(body[9:], now)
		r.notBefore = readTime(body[14:], now)
	default:
		return nil, errCorrupt
	}
	r.readCounters(text[headSize:])
	return r, nil
}

// parseDone reads what follows a done record's head.
func parseDone(r *record, body string, now int64) (*record, error) {
	switch len(body) {
	case doneSize - headSize:
		r.attempts = uint16(body[7])
	case longDoneSize - headSize:
		if r.readCounters(body[7:]); r.fewCounters() {
			return nil, errCorrupt // two forms of one record
		}
	default:
		return nil, errCorrupt
	}
	r.state = StateDone
	r.at = readTime(body, now)
	r.status = uint16(body[5])<<8 | uint16(body[6])
	return r, nil
}
