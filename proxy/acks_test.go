package proxy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAckBook settles deliveries in any order and plays the broker: an ack with `multiple` settles every outstanding
// tag up to its own. No tag may be settled before its delivery was finished, and in the end each is settled once.
func TestAckBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "deliveries")
		order := rapid.Permutation(tagsTo(n)).Draw(t, "order")
		book := newAckBook()
		finished, outstanding := map[uint64]bool{}, map[uint64]bool{}
		for _, tag := range tagsTo(n) {
			outstanding[tag] = true
		}
		settle := func(tag uint64) {
			if !finished[tag] || !outstanding[tag] {
				t.Fatalf("tag %d settled: finished %v, outstanding %v", tag, finished[tag], outstanding[tag])
			}
			delete(outstanding, tag)
		}
		flush := func() {
			tag, acks := book.prefix()
			if acks == 0 {
				return
			}
			settled := 0
			for low := range outstanding {
				if low <= tag {
					settle(low)
					settled++
				}
			}
			if settled != acks {
				t.Fatalf("ack up to %d carries %d acks, settled %d", tag, acks, settled)
			}
		}
		for _, tag := range order {
			if rapid.Bool().Draw(t, "given back") {
				book.forgo(tag)
				delete(outstanding, tag) // the nack goes out at once
			} else {
				book.finish(tag)
				finished[tag] = true
			}
			if rapid.Bool().Draw(t, "flush") {
				flush()
			}
			if rapid.IntRange(0, 5).Draw(t, "singles") == 0 {
				flush()
				for _, one := range book.singles() {
					settle(one)
				}
			}
		}
		flush()
		if len(outstanding) > 0 || book.waiting() > 0 || book.low != uint64(n) || len(book.given) > 0 {
			t.Fatalf("left over: %v, %+v", outstanding, book)
		}
	})
}

func tagsTo(n int) []uint64 {
	tags := make([]uint64, n)
	for i := range tags {
		tags[i] = uint64(i + 1)
	}
	return tags
}

func TestAckBookNeverAcksAnOpenDelivery(t *testing.T) {
	book := newAckBook()
	book.finish(3)
	if tag, acks := book.prefix(); acks != 0 {
		t.Fatalf("acked up to %d with 1 and 2 open", tag)
	}
	if got := book.singles(); !slices.Equal(got, []uint64{3}) {
		t.Fatalf("singles are %v", got)
	}
	book.finish(1)
	if tag, acks := book.prefix(); tag != 1 || acks != 1 {
		t.Fatalf("prefix is %d with %d acks", tag, acks)
	}
	book.finish(2)
	if tag, acks := book.prefix(); tag != 2 || acks != 1 || book.low != 3 {
		t.Fatalf("prefix is %d with %d acks, low %d", tag, acks, book.low)
	}
}
