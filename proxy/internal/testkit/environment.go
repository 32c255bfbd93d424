package testkit

import (
	"cmp"
	"fmt"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The environment chooses the servers and queues of a whole test run, so that a suite runs on others unchanged. What a test
// asks for itself, in its options, wins.
const (
	brokerRootVariable   = "RABBITONCE_TEST_BROKER_ROOT" // where StartBroker finds RabbitMQ; unset: on this machine
	storeRootVariable    = "RABBITONCE_TEST_STORE_ROOT"  // where StartRedis finds its server; unset: on this machine
	storeProgramVariable = "RABBITONCE_TEST_STORE"       // redis-server (when unset) or valkey-server
	queuesVariable       = "RABBITONCE_TEST_QUEUES"      // quorum (when unset) or classic: the source queues of tests that work with both
)

// SourceType is the type of the source queues of this test run: quorum or classic.
func SourceType() (string, error) {
	kind := cmp.Or(os.Getenv(queuesVariable), amqp.QueueTypeQuorum)
	if kind != amqp.QueueTypeQuorum && kind != amqp.QueueTypeClassic {
		return "", fmt.Errorf("%s is %q: it must be quorum or classic", queuesVariable, kind)
	}
	return kind, nil
}

// DeclareSource declares a durable queue of this test run's type. A test that is about quorum queues, or about classic ones, says
// so with DeclareQuorum or DeclareClassic.
func (c *Client) DeclareSource(queue string, args amqp.Table) error {
	kind, err := SourceType()
	if err != nil {
		return err
	}
	return c.declare(queue, kind, args)
}

// Describe says in a line what a test run is made with, such as "RabbitMQ 3.10.8, quorum queues, Redis 7.0.15".
func Describe(b *Broker, r *Redis) (string, error) {
	broker, err := b.Version()
	if err != nil {
		return "", err
	}
	kind, err := SourceType()
	if err != nil {
		return "", err
	}
	store, err := r.Version()
	return fmt.Sprintf("%s, %s queues, %s", broker, kind, store), err
}
