package proxy

import (
	"errors"
	"fmt"
	"strings"
)

// errUndecodable is a delivery that the AMQP library refuses, with the whole connection: its headers are nested
// deeper than 32 levels, or one list or table in them has more than 8192 elements.
var errUndecodable = errors.New("a message's headers cannot be decoded (nested deeper than 32 levels, or more than 8192 elements in one list): move the message at the head of the queue elsewhere, with a shovel or by purging it")

// channelEnd puts a close notice into words; an orderly close carries no error.
func channelEnd(err *closing) error {
	switch {
	case err == nil:
		return errors.New("connection closed")
	case !err.Server && strings.Contains(err.Reason, syntaxErrorReason()):
		return errUndecodable
	}
	return brokerError(err)
}

// brokerError keeps the broker's own reply text, with what to do where that is known.
func brokerError(err error) error {
	var e *closing
	if !errors.As(err, &e) {
		return err
	}
	remedy := ""
	switch {
	case e.Code == notFound && strings.Contains(e.Reason, "queue"):
		remedy = "; waiting until the queue exists"
	case e.Code == accessRefused && strings.Contains(strings.ToLower(e.Reason), "login"):
		remedy = "; check RABBITMQ_URL, RABBITMQ_USERNAME and RABBITMQ_PASSWORD"
	case e.Code == accessRefused && strings.Contains(e.Reason, "access to"):
		remedy = "; grant the user the permission named here"
	}
	return fmt.Errorf("broker said: %w%s", e, remedy)
}
