package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestSequence(t *testing.T) {
	const messages = 5000
	for _, copies := range []int{0, 30, 60, 100} {
		seen, at, published := map[int]int{}, map[int]int{}, 0
		for n := range sequence(messages, copies) {
			if seen[n]++; seen[n] == 1 {
				at[n] = published
			} else if apart := published - at[n]; apart < copyDistance && n < messages-copyDistance {
				t.Fatalf("%d%%: the copy of %d comes %d later", copies, n, apart)
			}
			published++
		}
		twice := 0
		for n := range messages {
			switch seen[n] {
			case 1:
			case 2:
				twice++
			default:
				t.Fatalf("%d%%: message %d comes %d times", copies, n, seen[n])
			}
		}
		if want := (load{messages: messages, copies: copies}).total(); published != want || twice != messages*copies/100 {
			t.Errorf("%d%%: %d published, want %d; %d copies", copies, published, want, twice)
		}
	}
}

func TestSequenceCanBeLeft(t *testing.T) {
	for n := range sequence(5000, 100) {
		if n == 4500 {
			break
		}
	}
	if got := slices.Collect(sequence(2, 100)); !slices.Equal(got, []int{0, 1, 0, 1}) {
		t.Errorf("sequence %v", got)
	}
}

func TestBodiesHaveTheirSize(t *testing.T) {
	id := newLedger("00000000-0000-4000-8000-", 1).id(0)
	for size, want := range map[int]int{0: 61, 64: 64, 1024: 1024, 65536: 65536} {
		p := &publisher{size: size, pad: strings.Repeat("x", size)}
		body := p.body(id)
		var fields struct{ MessageID string }
		if err := json.Unmarshal(body, &fields); err != nil || fields.MessageID != id || len(body) != want {
			t.Errorf("size %d: %d bytes, ID %q, %v", size, len(body), fields.MessageID, err)
		}
	}
}
