package proxy

import "slices"

// ackBook turns settled deliveries into as few acks as is safe. One ack with `multiple` settles every outstanding tag
// up to its own, so only a contiguous prefix of finished deliveries may share one. It belongs to one session's
// goroutine.
type ackBook struct {
	low    uint64              // every tag up to here is settled
	parked map[uint64]struct{} // finished and not yet acked, above a delivery that is still open
	given  map[uint64]struct{} // given back, above a delivery that is still open: nothing left to send for them
	ready  []uint64            // acked next, none of them part of a prefix
}

func newAckBook() *ackBook {
	return &ackBook{parked: map[uint64]struct{}{}, given: map[uint64]struct{}{}}
}

// finish notes that tag may be acked.
func (b *ackBook) finish(tag uint64) { b.parked[tag] = struct{}{} }

// forgo notes that tag was settled otherwise.
func (b *ackBook) forgo(tag uint64) { b.given[tag] = struct{}{} }

// prefix returns the highest tag of the contiguous settled prefix and how many acks it carries; 0 acks when it did
// not grow.
func (b *ackBook) prefix() (tag uint64, acks int) {
	last := uint64(0)
	for {
		next := b.low + 1
		if _, ok := b.parked[next]; ok {
			delete(b.parked, next)
			acks, last = acks+1, next
		} else if _, ok := b.given[next]; ok {
			delete(b.given, next)
		} else {
			return last, acks
		}
		b.low = next
	}
}

// waiting is how many finished deliveries wait behind an open one.
func (b *ackBook) waiting() int { return len(b.parked) }

// singles returns the tags that wait behind an open delivery, in order, to be acked one by one.
func (b *ackBook) singles() []uint64 {
	b.ready = b.ready[:0]
	for tag := range b.parked {
		b.ready = append(b.ready, tag)
		b.given[tag] = struct{}{}
		delete(b.parked, tag)
	}
	slices.Sort(b.ready)
	return b.ready
}
