package main

import (
	"strings"
	"testing"
	"time"
)

func TestRunsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		program program
		copies  int
		posts   []int // messages, in the order of their POSTs
		strange int
		left    int
		dead    bool
		want    string // "" is nothing wrong
	}{
		{name: "each once", program: programRabbitonce, copies: 50, posts: []int{0, 1}},
		{name: "the baseline POSTs copies", program: programBaseline, copies: 50, posts: []int{0, 1, 0}},
		{name: "a copy too many", program: programRabbitonce, copies: 50, posts: []int{0, 1, 0}, want: "1 POST(s) too many"},
		{name: "the baseline twice too many", program: programBaseline, copies: 50, posts: []int{0, 1, 0, 0}, want: "1 POST(s) too many"},
		{name: "lost", program: programRabbitonce, posts: []int{1}, want: "1 message(s) lost"},
		{name: "left", program: programFloor, posts: []int{0, 1}, left: 3, want: "3 message(s) left in the queue"},
		{name: "dead", program: programRabbitonce, posts: []int{0, 1}, dead: true, want: "there are dead letters"},
		{name: "strange", program: programRabbitonce, posts: []int{0, 1}, strange: 1, want: "1 POST(s) with a strange key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &run{program: c.program, load: load{messages: 2, copies: c.copies}, ledger: newLedger("x", 2)}
			for _, n := range c.posts {
				r.ledger.note([]byte(r.ledger.id(n)), time.Now())
			}
			for range c.strange {
				r.ledger.note([]byte("strange"), time.Now())
			}
			err := r.judge(c.left, c.dead)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("judged %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("judged %v, want %q", err, c.want)
			}
		})
	}
}

func TestHalvesAreCompared(t *testing.T) {
	r := &run{figures: figures{}, tenths: []figures{{speed: 100, peak: 20}, {speed: 100, peak: 20}, {speed: 80, peak: 22}, {speed: 100, peak: 22}}}
	r.compareHalves()
	if r.figures[speedKept] != 0.9 || r.figures[memoryGrown] != 1.1 {
		t.Errorf("speed %v, memory %v", r.figures[speedKept], r.figures[memoryGrown])
	}
	whole := &run{figures: figures{}}
	whole.compareHalves()
	if len(whole.figures) != 0 {
		t.Errorf("a run without tenths has figures %v", whole.figures)
	}
}
