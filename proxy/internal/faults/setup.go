package faults

import (
	"fmt"
	"time"

	"rabbitonce/proxy/internal/faults/check"
)

// Times are short, so that a run comes to every edge often; their order is that of the defaults.
const (
	timeout   = 2 * time.Second // FORWARD_TIMEOUT
	lease     = 3 * time.Second // DEDUP_LEASE
	retention = 48 * time.Hour
	grace     = 4 * time.Second // SHUTDOWN_GRACE
	// exhausted is RETRY_MAX_ATTEMPTS of the queue whose messages always fail. In the other queues no number of faults uses up
	// the attempts.
	exhausted = 4
	unlimited = 1000
)

// The queues. Each has a source queue, a dead-letter queue and a wait queue.
const (
	retryQueue   = "retry"
	deadQueue    = "deadletter"
	lookupQueue  = "lookup"
	exhaustQueue = "exhaust"
)

var queueNames = []string{retryQueue, deadQueue, lookupQueue, exhaustQueue}

// queueOf is what the program is told about a queue, for those who check.
func queueOf(name string) check.Queue {
	q := check.Queue{Policy: check.Retry, Timeout: timeout, Lease: lease, MaxAttempts: unlimited}
	switch name {
	case deadQueue:
		q.Policy = check.DeadLetter
	case lookupQueue:
		q.Policy = check.Lookup
	case exhaustQueue:
		q.MaxAttempts = exhausted
	}
	return q
}

// ladder is RETRY_BACKOFF; its last step goes through a wait queue.
const (
	ladder = "100ms,500ms,2s"
	hold   = time.Second // RETRY_HOLD
)

// environment is that of a process called name, whose servers are at these addresses.
func environment(name, brokerURL, storeURL, serviceAddr string) map[string]string {
	env := map[string]string{
		"RABBITMQ_URL": brokerURL, "REDIS_URL": storeURL,
		"QUEUES":      fmt.Sprintf("%s,%s,%s,%s", retryQueue, deadQueue, lookupQueue, exhaustQueue),
		"FORWARD_URL": "http://" + serviceAddr + "/work", "FORWARD_HEADERS": processHeader + ": " + name,
		"FORWARD_TIMEOUT": timeout.String(), "FORWARD_CONCURRENCY": "12", "PREFETCH": "40",
		"FORWARD_UNKNOWN_MAX": fmt.Sprint(unlimited), "DEDUP_LEASE": lease.String(), "DEDUP_RETENTION": retention.String(),
		"RETRY_BACKOFF": ladder, "RETRY_HOLD": hold.String(), "RETRY_MAX_ATTEMPTS": fmt.Sprint(unlimited), "SHUTDOWN_GRACE": grace.String(),
		"LOG_LEVEL": "warn",
		// Under faults many messages in a row do not end done. The brake has tests of its own; here it would wait for minutes.
		"FORWARD_BRAKE_AFTER": "0",
	}
	set := func(queue, setting, value string) { env["QUEUE_"+queue+"_"+setting] = value }
	set("DEADLETTER", "FORWARD_ON_UNKNOWN", string(check.DeadLetter))
	set("LOOKUP", "FORWARD_ON_UNKNOWN", string(check.Lookup))
	set("LOOKUP", "FORWARD_LOOKUP_URL", "http://"+serviceAddr+"/done/{id}")
	set("EXHAUST", "RETRY_MAX_ATTEMPTS", fmt.Sprint(exhausted))
	return env
}

// processHeader tells the service which process sent a request.
const processHeader = "X-Process"
