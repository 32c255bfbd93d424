package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// brokerTrouble is an error of the broker's side with the reason that it comes down to.
type brokerTrouble struct {
	why     sessionEnd
	err     error
	remedy  string
	refused *refusal // with endPermission
}

func trouble(why sessionEnd, err error) *brokerTrouble {
	return &brokerTrouble{why: why, err: err, remedy: why.remedy()}
}

// Error keeps the broker's own words and says what to do where that is known.
func (t *brokerTrouble) Error() string {
	if t.remedy == "" {
		return t.err.Error()
	}
	return t.err.Error() + "; " + t.remedy
}

func (t *brokerTrouble) Unwrap() error { return t.err }

// Why is the reason as /status and the log show it.
func (t *brokerTrouble) Why() string { return t.why.String() }

// errUndecodable is a delivery that the AMQP library refuses, with the whole connection: its headers are nested
// deeper than 32 levels, or one list or table in them has more than 8192 elements.
var errUndecodable = trouble(endUndecodable, errors.New("a message's headers cannot be decoded (nested deeper than 32 levels, or more than 8192 elements in one list): move the message at the head of the queue elsewhere, with a shovel or by purging it, and start the process again: it is not tried more than a few times, since a quorum queue drops a message that comes back too often"))

// errStream refuses a stream: its messages cannot be settled one by one, and an ack removes nothing.
var errStream = trouble(endStream, errors.New("the queue is a stream, which cannot be consumed: use a quorum or classic queue"))

// errCancelled is the broker's notice that a consumer is gone.
var errCancelled = trouble(endCancelled, errors.New("the broker cancelled the consumer: the queue was deleted, or it moved to another node, or a message was held for longer than consumer_timeout (RabbitMQ 4.3 and later)"))

// errConsumerGone is the end of a consumer of which nothing else is known.
var errConsumerGone = trouble(endOther, errors.New("consumer ended"))

// channelEnd puts a close notice into words; an orderly close carries no error.
func channelEnd(err *closing) error {
	switch {
	case err == nil:
		return trouble(endNetwork, errors.New("connection closed"))
	case !err.Server && strings.Contains(err.Reason, syntaxErrorReason()):
		return errUndecodable
	}
	return brokerError(err)
}

// brokerError tells the broker's replies apart. What the library itself finds wrong is the loss of the connection.
func brokerError(err error) error { return brokerErrorOn("", err) }

// brokerErrorOn is brokerError of an operation that needs a permission: brokers up to 3.11 do not say which one.
func brokerErrorOn(needed access, err error) error {
	var known *brokerTrouble
	var e *closing
	switch {
	case errors.As(err, &known) || !errors.As(err, &e):
		return err
	case !e.Server:
		return trouble(endNetwork, fmt.Errorf("connection lost: %s", e.Reason))
	}
	said := trouble(replyReason(e), fmt.Errorf("broker said: %w", err))
	if said.why == endPermission {
		said.refused = parseRefusal(e.Reason, needed)
		said.remedy = said.refused.remedy()
	}
	return said
}

// replyReason reads a reply of the broker. One code stands for many reasons, so its words count as well: those of
// RabbitMQ 3.10 to 4.3 (rabbit_access_control, rabbit_amqqueue, rabbit_channel, rabbit_queue_type and rabbit_reader in
// https://github.com/rabbitmq/rabbitmq-server/tree/main/deps/rabbit/src). Of words that are not known only the code
// counts.
func replyReason(e *closing) sessionEnd {
	says := func(all ...string) bool {
		return !slices.ContainsFunc(all, func(w string) bool { return !strings.Contains(e.Reason, w) })
	}
	switch {
	case says("limit", "is reached"), says("has reached the maximum allowed"), says("channel_max"):
		return endLimit
	case says("is down or inaccessible"):
		return endQueueDown
	case says("vhost", "not found"), says("vhost", "is down"):
		return endVhostMissing
	case e.Code == accessRefused && says("Login was refused"):
		return endLoginRefused
	case says("in exclusive use"), says("cannot obtain exclusive access"):
		return endExclusive
	case says("access to", "refused for user"):
		return endPermission
	case says("delivery acknowledgement", "timed out"):
		return endAckTimeout
	case says("failed to perform operation on"), says("timed out"), says("due to a timeout"):
		return endQueueDown
	case e.Code == notFound && says("queue"):
		return endQueueMissing
	case !e.Recover: // a hard error, in the terms of the protocol
		return endConnectionClosed
	}
	return endChannelClosed
}
