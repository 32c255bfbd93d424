package proxy

import (
	"errors"
	"fmt"
	"strings"
)

// queueCheck looks at one queue and at the queues that belong to it.
type queueCheck struct {
	cfg   *Config
	queue QueueConfig
	conn  *connection
}

func (c *queueCheck) run() []finding {
	all := c.source()
	if c.queue.DeadLetterMode != DeadLetterByReject {
		all = append(all, c.deadLetters()...)
	}
	if !c.queue.Ordering.kept() {
		all = append(all, c.waitQueues()...)
	}
	return all
}

// source looks at the queue that is consumed.
func (c *queueCheck) source() []finding {
	name := c.queue.Name
	subject := about("queue " + name)
	messages, consumers, err := countQueue(c.conn, name, accessRead)
	if err != nil {
		return c.missing(subject, err)
	}
	kind, err := queueType(c.conn, name)
	switch {
	case err != nil:
		return []finding{subject.failed(err)}
	case kind == typeStream:
		return []finding{subject.failed(errStream)}
	}
	found := subject.ok("may be consumed; %s, %d message(s) ready, %d consumer(s)", kind, messages, consumers)
	if kind != typeClassic && kind != typeQuorum {
		return []finding{found, subject.info("its type is not known here, so its arguments are not looked at")}
	}
	facts, err := factsOf(c.conn, name, kind)
	switch {
	case whyEnded(err) == endPermission:
		return []finding{found, subject.info("its arguments are told only to a user with the configure permission, which is not needed otherwise: "+
			"rabbitmqctl list_queues -p %s name arguments", shellQuoted(c.cfg.vhost()))}
	case err != nil:
		return []finding{found, subject.info("its arguments could not be told: %v", err)}
	}
	found.Message += ", " + facts.String()
	all := append([]finding{found}, adviseSource(subject, kind, facts)...)
	return append(all, adviseDemands(subject, kind, facts, demandsOf(c.queue), brokerNumber(c.conn))...)
}

// missing is about a queue that cannot be seen. One that is not there may be declared, if RABBITMQ_DECLARE says so.
func (c *queueCheck) missing(subject about, err error) []finding {
	all := []finding{subject.failed(err)}
	if whyEnded(err) != endQueueMissing {
		return all
	}
	if c.cfg.RabbitMQDeclare {
		declare := wouldDeclare(c.conn, c.queue.Name, c.cfg.sourceArguments(c.queue))
		all[0] = subject.ok("is not there; it will be declared (RABBITMQ_DECLARE), as a quorum queue")
		if declare != nil && !errors.Is(declare, errNotDeclared) {
			all[0] = subject.failed(declare)
		}
	}
	if _, err := queueType(c.conn, c.queue.Name); whyEnded(err) == endPermission { // the broker looks at that first
		all = append(all, subject.failed(err))
	}
	return all
}

// adviseSource says what in a queue's declaration could cost something.
func adviseSource(subject about, kind string, facts queueFacts) []finding {
	var all []finding
	if !facts.durable {
		all = append(all, subject.warn("the queue is not durable, and lost with all its messages when the broker restarts", "declare it as durable"))
	}
	if facts.autoDelete {
		all = append(all, subject.warn("the queue is deleted, with all its messages, when its last consumer ends", "declare it without auto-delete"))
	}
	if limit, ok := facts.number("x-delivery-limit"); ok && kind == typeQuorum && limit >= 0 && limit < returnsLimit {
		all = append(all, subject.warn(fmt.Sprintf("the broker drops or dead-letters a message that came back more than %d time(s), and each lost connection is one", limit),
			fmt.Sprintf("raise x-delivery-limit to %d or more", returnsLimit)))
	}
	return all
}

// demands are what settings ask of the declaration of a queue.
type demands struct {
	order  bool // messages are kept in order: retries in place, nothing goes through wait queues
	reject bool // dead letters go to the queue's own dead-letter exchange
}

func demandsOf(q QueueConfig) demands {
	return demands{order: q.Ordering.kept(), reject: q.DeadLetterMode == DeadLetterByReject}
}

// adviseDemands says where a declaration falls short of what settings ask. version is the broker's, as in 4.0 = 400.
func adviseDemands(subject about, kind string, facts queueFacts, d demands, version int) []finding {
	var all []finding
	if d.reject && !facts.has("x-dead-letter-exchange") {
		all = append(all, subject.warn("DEADLETTER_MODE=reject, and the queue was declared without a dead-letter exchange: unless a policy names one the broker drops dead letters",
			"set a policy with dead-letter-exchange, or DEADLETTER_MODE=queue"))
	}
	if !d.order {
		return all
	}
	if active, _ := facts.arguments["x-single-active-consumer"].(bool); !active {
		all = append(all, subject.warn("ORDERING, and the queue has no single active consumer: the order holds with one replica only", "run one replica, or declare it with x-single-active-consumer"))
	}
	if kind == typeQuorum && countsReturns(facts, version) {
		all = append(all, subject.warn("ORDERING, and the queue has a delivery limit: messages are returned and not moved aside, so the broker can drop or dead-letter one that came back often",
			"set a policy with delivery-limit -1"))
	}
	return append(all, subject.info("ORDERING: a message is retried in place and held unacknowledged meanwhile; the broker's consumer_timeout (30 minutes unless set) should be longer than RETRY_MAX_AGE"))
}

// countsReturns tells whether a quorum queue drops messages that were returned often. From 4.0 on it has a limit unless
// it is taken off, and from 4.3 on what is returned in good order does not count
// (https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling).
func countsReturns(facts queueFacts, version int) bool {
	if limit, ok := facts.number("x-delivery-limit"); ok {
		return limit >= 0
	}
	return version >= 400 && version < 403
}

// deadLetters looks at the queue for dead letters. One that exists is used as it is.
func (c *queueCheck) deadLetters() []finding {
	name := c.queue.DeadLetterQueue
	subject := about("dead letters " + name)
	letters, _, err := countQueue(c.conn, name, accessConfigure)
	if whyEnded(err) == endQueueMissing {
		err = wouldDeclare(c.conn, name, table{"x-queue-type": typeQuorum})
		if err == nil || errors.Is(err, errNotDeclared) {
			return []finding{subject.ok("is declared when the first letter needs it")}
		}
	}
	if err != nil {
		return []finding{subject.failed(err)}
	}
	found := []finding{subject.ok("is there, %d message(s) ready", letters)}
	kind, err := queueType(c.conn, name)
	if err != nil || kind != typeClassic && kind != typeQuorum {
		return found // seeing more takes permissions that writing to it does not
	}
	if facts, err := factsOf(c.conn, name, kind); err == nil {
		found = append(found, adviseLetters(subject, facts)...)
	}
	return found
}

// adviseLetters says how a dead-letter queue can lose letters.
func adviseLetters(subject about, facts queueFacts) []finding {
	var all []finding
	lossy := func(what, remedy string) { all = append(all, subject.warn(what, remedy)) }
	if !facts.durable || facts.autoDelete {
		lossy("the queue does not live as long as its letters: it is not durable, or deleted with its last consumer", "declare it anew")
	}
	limited := facts.has("x-max-length") || facts.has("x-max-length-bytes")
	if overflow, _ := facts.arguments["x-overflow"].(string); limited && !strings.HasPrefix(overflow, "reject-publish") {
		lossy("at its length limit the queue drops its oldest letters", "declare it with x-overflow reject-publish, or without a limit")
	}
	if facts.has("x-message-ttl") || facts.has("x-expires") {
		lossy("its letters, or the queue with them, go after a time (x-message-ttl, x-expires)", "declare it without")
	}
	return all
}

// waitQueues looks at the queues that messages wait in. They have to be as they would be declared.
func (c *queueCheck) waitQueues() []finding {
	subject := about("wait queues of " + c.queue.Name)
	var good []string
	var all []finding
	for _, step := range waitSteps(c.queue.Retry.Backoff, c.queue.Retry.Hold) {
		name := waitQueue(c.queue.Name, step)
		err := wouldDeclare(c.conn, name, waitArguments(c.queue.Name, step))
		_, differs := parseDifference(err)
		switch {
		case err == nil:
			good = append(good, name)
		case errors.Is(err, errNotDeclared):
			good = append(good, name+" (when first needed)")
		case differs:
			all = append(all, subject.fail(fmt.Sprintf("%s was declared otherwise: %v", name, err), "delete it when it is empty; it is declared anew when it is needed"))
		default:
			all = append(all, subject.failed(fmt.Errorf("%s: %w", name, err)))
		}
	}
	if len(good) > 0 {
		all = append([]finding{subject.ok("%s", strings.Join(good, ", "))}, all...)
	}
	return all
}
