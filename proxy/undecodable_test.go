package proxy

import (
	"errors"
	"testing"
	"time"
)

// Catches: a message that cannot be decoded asked for without end, until the broker drops it; other trouble that starts the count anew.
func TestUndecodable(t *testing.T) {
	other := errors.New("network")
	type end struct {
		err      error
		handled  bool
		prefetch int // of the next session
		pause    time.Duration
		giveUp   bool
	}
	for name, ends := range map[string][]end{
		"at the head": {
			{errUndecodable, true, 1, 0, false},
			{errUndecodable, true, 1, undecodablePause, false}, // what was before it is done
			{errUndecodable, false, 1, undecodablePause, true},
		},
		"with other trouble between": {
			{errUndecodable, true, 1, 0, false},
			{other, false, 1, 0, false},
			{errUndecodable, false, 1, undecodablePause, false},
			{errPaused, false, 1, 0, false},
			{errUndecodable, false, 1, undecodablePause, true},
		},
		"taken away": {
			{errUndecodable, false, 1, 0, false},
			{errUndecodable, false, 1, undecodablePause, false},
			{other, true, 16, 0, false},
			{errUndecodable, false, 1, 0, false},
		},
		"never": {{other, false, 16, 0, false}, {other, true, 16, 0, false}},
	} {
		var u undecodable
		for i, e := range ends {
			pause, giveUp := u.ended(e.err, e.handled)
			if got := u.prefetch(16); got != e.prefetch || pause != e.pause || giveUp != e.giveUp {
				t.Errorf("%s, session %d: prefetch %d, pause %v, gives up %t; want %+v", name, i+1, got, pause, giveUp, e)
			}
		}
	}
}
