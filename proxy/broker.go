package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// broker dials RabbitMQ. Each queue has a connection of its own, so that whatever ends one disturbs no other queue,
// and so has publishing, because the broker stops reading a connection that published while an alarm is on, acks
// included.
type broker struct {
	config  func() (BrokerConfig, error) // read again at each dial: credentials may have been rotated
	version string                       // of the program, for the broker's list of connections
	declare table                        // how a source queue that is missing is declared; nil: it is waited for
	grants  grants                       // what a user needs, for the words of errors
	hosts   hostOrder
	connect dialBroker   // nil: by the network
	frame   atomic.Int64 // bytes a frame may have on the latest connection; 0 before the first

	mu   sync.Mutex
	conn *connection // the consumer's connection; nil or closed when there is none
}

func newBroker(cfg *Config) *broker {
	config := cfg.reloadBroker
	if config == nil {
		config = func() (BrokerConfig, error) { return cfg.BrokerConfig, nil }
	}
	return &broker{config: config, connect: cfg.dialBroker, version: cfg.Version, grants: neededGrants(cfg)}
}

// sourceArguments declare a source queue that is missing, with RABBITMQ_DECLARE; nil without. Order needs one consumer
// at a time.
func (c *Config) sourceArguments(q QueueConfig) table {
	switch {
	case !c.RabbitMQDeclare:
		return nil
	case q.Ordering.kept():
		return table{"x-queue-type": "quorum", "x-single-active-consumer": true}
	}
	return table{"x-queue-type": "quorum"}
}

// consuming returns the consumer's connection, dialling when there is none.
func (b *broker) consuming(ctx context.Context) (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil && !b.conn.IsClosed() {
		return b.conn, nil
	}
	conn, err := b.dial(ctx, forConsuming)
	if err != nil {
		return nil, err
	}
	b.conn = conn
	return conn, nil
}

// close ends the consumer's connection; unacknowledged deliveries go back to their queues.
func (b *broker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		_ = b.conn.CloseDeadline(time.Now().Add(closeTimeout))
	}
}
