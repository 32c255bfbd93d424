package proxy

import (
	"errors"
	"time"
)

const (
	// undecodableTries is how often a message that cannot be decoded is asked for by itself. Each time counts as a return of it,
	// and could be its last.
	undecodableTries = 2
	undecodablePause = time.Minute
)

// undecodable is what a queue does about a message whose headers the AMQP library refuses, with the whole connection: it
// asks for one message at a time, so that only that one comes back, and gives up after a few tries, until a person has
// taken the message away and started the process again.
type undecodable struct {
	alone bool // one message at a time
	tries int  // while alone
}

// prefetch is how many messages to ask for.
func (u *undecodable) prefetch(usual int) int {
	if u.alone {
		return 1
	}
	return usual
}

// ended notes how a session ended; handled says that it settled a message. giveUp says that the queue is to be left alone.
func (u *undecodable) ended(err error, handled bool) (pause time.Duration, giveUp bool) {
	switch {
	case !errors.Is(err, errUndecodable):
		if handled { // the message is gone
			*u = undecodable{}
		}
		return 0, false
	case !u.alone:
		u.alone = true
		return 0, false
	}
	u.tries++
	return undecodablePause, u.tries >= undecodableTries
}
