package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"rabbitonce/dedup"
)

// What `check` asks the broker. Nothing here creates, changes or takes anything: each question is put so that the
// broker answers it with a refusal. A refusal closes the channel, so each has a channel of its own.

// onChannel asks one question.
func onChannel(conn *connection, ask func(*channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", brokerError(err))
	}
	defer func() { _ = ch.Close() }()
	return ask(ch)
}

// countQueue tells how many messages of a queue are ready and how many consumers it has. Brokers up to 4.2 ask no
// permission for that, later ones take any on the queue; needed is the one that the process has to have anyway.
func countQueue(conn *connection, queue string, needed access) (messages, consumers int, err error) {
	err = onChannel(conn, func(ch *channel) error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		messages, consumers = q.Messages, q.Consumers
		return brokerErrorOn(needed, err)
	})
	return messages, consumers, err
}

var queueTypeNamed = regexp.MustCompile(`of queue type rabbit_(\w+?)_queue`)

// queueType tells a queue's type and, on the way, that it may be consumed. Both questions are consumers that the broker
// refuses: the first for a priority that is no number, which it looks at after the permission and before anything else;
// the second for the offset in a stream, which it takes for a stream only, and else names the type.
func queueType(conn *connection, queue string) (string, error) {
	consume := func(arguments table) error {
		return onChannel(conn, func(ch *channel) error {
			if err := ch.Qos(1, 0, false); err != nil { // a stream asks for it
				return brokerError(err)
			}
			_, err := ch.Consume(queue, "", false, false, false, false, arguments)
			return err
		})
	}
	err := consume(table{"x-priority": "?"})
	if !isPrecondition(err) {
		if err == nil {
			err = errors.New("the broker takes a consumer whose priority is no number")
		}
		return "", brokerErrorOn(accessRead, err)
	}
	if named := queueTypeNamed.FindStringSubmatch(err.Error()); named != nil {
		return named[1], nil
	}
	switch err = consume(table{"x-stream-offset": "next"}); {
	case err == nil:
		return typeStream, nil
	case isPrecondition(err):
		if named := queueTypeNamed.FindStringSubmatch(err.Error()); named != nil {
			return named[1], nil
		}
		return "", nil
	}
	return "", brokerErrorOn(accessRead, err)
}

// factsOf reads how a queue was declared.
func factsOf(conn *connection, queue, kind string) (queueFacts, error) {
	facts, err := readFacts(kind, func(durable, autoDelete bool, arguments table) error {
		return onChannel(conn, func(ch *channel) error {
			_, err := ch.QueueDeclare(queue, durable, autoDelete, false, false, arguments)
			return err
		})
	})
	return facts, brokerErrorOn(accessConfigure, err)
}

// wouldDeclare tells what declaring a queue would do: nil when it is there and was declared like that; errNotDeclared
// when it is not there and may be declared. A queue that differs, and a permission that is missing, are errors of the
// broker's.
func wouldDeclare(conn *connection, queue string, arguments table) error {
	all := maps.Clone(arguments)
	all[neverDeclared] = "?"
	err := onChannel(conn, func(ch *channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, all)
		return err
	})
	if isPrecondition(err) && strings.Contains(err.Error(), "invalid arg '"+neverDeclared+"'") {
		return errNotDeclared
	}
	return brokerErrorOn(accessToDeclare(arguments), err)
}

func isPrecondition(err error) bool {
	e, ok := errors.AsType[*closing](err)
	return ok && e.Code == preconditionFailed
}

// errPublishersBlocked is what the broker says of a memory or disk alarm.
var errPublishersBlocked = errors.New("the broker blocks publishers")

// tryPublishing publishes an empty message to the default exchange for a queue that does not exist, and returns nil
// when the broker has returned it. Nothing is left of it. The connection is used for nothing else: the broker may block
// it (https://www.rabbitmq.com/docs/connection-blocked).
func tryPublishing(ctx context.Context, conn *connection) error {
	blocked := conn.NotifyBlocked(make(chan blocking, 4))
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", brokerError(err))
	}
	if err := ch.Confirm(false); err != nil {
		return brokerError(err)
	}
	returns := ch.NotifyReturn(make(chan returned, 1))
	closed := ch.NotifyClose(make(chan *closing, 1))
	if err := ch.PublishWithContext(ctx, "", "rabbitonce.check."+dedup.NewDeadID(), true, false, letter{}); err != nil {
		return brokerError(err)
	}
	select {
	case <-returns:
		return nil
	case err := <-closed:
		if err == nil {
			return errors.New("the connection was closed before the broker answered")
		}
		return brokerErrorOn(accessWrite, err)
	case b := <-blocked:
		return fmt.Errorf("%w: %s", errPublishersBlocked, b.Reason)
	case <-ctx.Done():
		return fmt.Errorf("no answer to a message that no queue takes: %w", context.Cause(ctx))
	}
}

// brokerVersion is what the broker said about itself, such as "RabbitMQ 4.0.5".
func brokerVersion(conn *connection) string {
	product, _ := conn.Properties["product"].(string)
	version, _ := conn.Properties["version"].(string)
	return strings.TrimSpace(product + " " + version)
}

// brokerNumber is the version as a number that can be compared: 4.0 is 400. 0 when it is not known.
func brokerNumber(conn *connection) int {
	version, _ := conn.Properties["version"].(string)
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return 0
	}
	return 100*major + minor
}
