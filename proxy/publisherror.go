package proxy

import (
	"errors"
	"fmt"
	"strings"
)

// Why a publish did not end well, each with what to do. The message stays where it was after any of them.
var (
	errUnroutable = errors.New("the broker returned the message: no queue took it; was the queue deleted?")
	errNacked     = errors.New("the broker refused the message (nack): the queue is at its length limit with overflow reject-publish, or most of its replicas are away")
	errNoConfirm  = fmt.Errorf("no confirm from the broker within %v: does the queue have a majority of its replicas?", confirmTimeout)
	errTooLarge   = errors.New("the message is larger than the broker takes")
	errUnlike     = errors.New("the queue exists with other arguments: delete it when it is empty, and it is declared anew; until then messages wait where they are")
)

// publishError puts a remedy to what the broker says of a message with so many bytes, or of its queue. Any other error stays
// as it is.
func publishError(err error, size int) error {
	var e *closing
	if !errors.As(err, &e) || e.Code != preconditionFailed {
		return err
	}
	switch {
	case strings.Contains(e.Reason, "larger than configured max size"):
		return fmt.Errorf("%w: it has %d bytes; raise max_message_size in the broker's configuration, or move the message elsewhere (the broker said: %s)",
			errTooLarge, size, e.Reason)
	case strings.Contains(e.Reason, "inequivalent arg"):
		return fmt.Errorf("%w (the broker said: %s)", errUnlike, e.Reason)
	}
	return err
}
