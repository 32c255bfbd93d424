package proxy

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// destination is a queue to publish to, and how it is declared when it is missing.
type destination struct {
	queue     string
	arguments table
	exact     bool // one that exists must have these arguments too
	unlimited bool // without a limit of returns, where the broker would set one
}

// unlimitedSince is the version of RabbitMQ that gives every quorum queue a limit of 20 returns, and knows -1 for none
// (https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling). Earlier ones set no limit of their own and
// refuse -1.
const unlimitedSince = 4

// on is the destination as a broker of that version takes it.
func (to destination) on(version string) destination {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); !to.unlimited || err != nil || n < unlimitedSince {
		return to
	}
	to.arguments = maps.Clone(to.arguments)
	to.arguments["x-delivery-limit"] = int64(-1)
	return to
}

// serverVersion is the broker's version as it states it, such as 3.10.8.
func serverVersion(conn *connection) string {
	version, _ := conn.Properties["version"].(string)
	return version
}

// deadLetters is where the queue's dead letters go. A person who looks at letters in the management UI gives them back,
// and so does a redrive that leaves some out: that must never be once too often.
func deadLetters(queue string) destination {
	return destination{queue: queue, arguments: table{"x-queue-type": "quorum"}, unlimited: true}
}

// waitQueueOf is the wait queue of a queue for a step.
func waitQueueOf(queue string, step time.Duration) destination {
	return destination{queue: waitQueue(queue, step), arguments: waitArguments(queue, step), exact: true}
}
