package proxy

import "errors"

// sessionEnd is why a queue's session ended, or why none could begin: the label `why` of session_ends_total, the field
// of the same name in /status and in the log line "waiting", and a row in docs/operations.md.
type sessionEnd uint8

const (
	endCancelled sessionEnd = iota
	endQueueMissing
	endQueueDown
	endStream
	endExclusive
	endUndecodable
	endAckTimeout
	endChannelClosed
	endConnectionClosed
	endNetwork
	endUnreachable
	endTLS
	endLoginRefused
	endVhostMissing
	endPermission
	endLimit
	endSettings
	endPaused
	endOther
)

var sessionEndNames = [...]string{
	endCancelled: "cancelled", endQueueMissing: "queue-missing", endQueueDown: "queue-down", endStream: "stream",
	endExclusive: "exclusive", endUndecodable: "undecodable", endAckTimeout: "ack-timeout", endChannelClosed: "channel-closed",
	endConnectionClosed: "connection-closed", endNetwork: "network", endUnreachable: "unreachable", endTLS: "tls",
	endLoginRefused: "login-refused", endVhostMissing: "vhost-missing", endPermission: "permission", endLimit: "limit",
	endSettings: "settings", endPaused: "paused", endOther: "other",
}

func (e sessionEnd) String() string { return sessionEndNames[e] }

// sessionEnds lists all values.
func sessionEnds() []sessionEnd {
	all := make([]sessionEnd, len(sessionEndNames))
	for i := range all {
		all[i] = sessionEnd(i)
	}
	return all
}

// remedy is what a person can do; "" where the words of the problem say it already, or nothing has to be done.
func (e sessionEnd) remedy() string {
	switch e {
	case endCancelled:
		return "consuming again as soon as the queue is there"
	case endQueueMissing:
		return "waiting until the queue exists; is the name in QUEUES right, and the vhost in RABBITMQ_URL? RABBITMQ_DECLARE=true would declare it"
	case endQueueDown:
		return "waiting until the broker's node that has the queue, or a majority of its replicas, is back"
	case endExclusive:
		return "waiting until the other consumer, which has the queue for itself, is gone"
	case endAckTimeout:
		return "a message was held for longer than the broker allows (consumer_timeout): keep FORWARD_TIMEOUT and PREFETCH well below it, or raise it there"
	case endConnectionClosed:
		return "connecting again"
	case endNetwork:
		return "connecting again; if this goes on, look at the network and the broker's log"
	case endUnreachable:
		return "is the broker up, and are host and port in RABBITMQ_URL right?"
	case endLoginRefused:
		return "check RABBITMQ_URL, RABBITMQ_USERNAME and RABBITMQ_PASSWORD (the user guest may log in from the broker's own machine only)"
	case endVhostMissing:
		return "is the vhost in RABBITMQ_URL right, and was it created? A slash in its name is written %2F"
	case endLimit:
		return "raise the limit on the broker, or close what else uses it up"
	}
	return ""
}

// whyEnded finds the reason in an error of the broker's side.
func whyEnded(err error) sessionEnd {
	if t, ok := errors.AsType[*brokerTrouble](err); ok {
		return t.why
	}
	return endOther
}
