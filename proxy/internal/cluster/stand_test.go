package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// patience bounds a test: a hang becomes a failure, a busy machine does not.
const patience = 5 * time.Minute

// stand is one test's corner of the cluster: a queue with its dead letters, a service, and a replica at work under load.
type stand struct {
	t       *testing.T
	ctx     context.Context // ends with the test's patience
	nodes   []*testkit.Broker
	queue   string
	service *testkit.Service
	replica *testkit.Replica
	load    *load
}

// members gives a queue a member on each node.
var members = amqp.Table{"x-quorum-initial-group-size": 3}

// newStand returns a stand whose replica is at work. Each POST takes a moment, so that some are under way at any time.
func newStand(t *testing.T, behaviour testkit.Behaviour) *stand {
	t.Helper()
	return newStandVia(t, shared.Cluster.URL(), behaviour)
}

// newStandVia is newStand with a replica that is given another URL of the cluster.
func newStandVia(t *testing.T, url string, behaviour testkit.Behaviour) *stand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &stand{t: t, ctx: ctx, nodes: shared.Cluster.Nodes, queue: t.Name()}
	s.must(shared.Cluster.StartAll(ctx))               // a test that failed may have left nodes dead
	s.eventually("queues are declared", func() error { // a cluster that was just put together again may not be ready for it
		return s.onAnyNode(func(c *testkit.Client) error {
			if err := c.DeclareQuorum(s.queue, members); err != nil {
				return err
			}
			return c.DeclareQuorum(s.queue+".dead", members)
		})
	})
	var err error
	s.service, err = testkit.StartService(behaviour)
	s.must(err)
	t.Cleanup(func() { s.closed(s.service.Close()) })
	s.replica, err = testkit.StartReplica(shared.Binary.Path, map[string]string{
		"RABBITMQ_URL": url, "REDIS_URL": shared.Redis.URL, "QUEUES": s.queue, "FORWARD_URL": s.service.URL + "/work",
		"DEDUP_PREFIX": s.queue, "ADMIN_ADDR": "", "FORWARD_BRAKE_AFTER": "0", "RETRY_HOLD": "1s", "RETRY_BACKOFF": "2s",
	})
	s.must(err)
	t.Cleanup(s.closeReplica)
	s.load = s.startLoad()
	t.Cleanup(func() { cancel(); <-s.load.ended })
	s.progress()
	return s
}

func (s *stand) closeReplica() {
	s.closed(s.replica.Close())
	for _, alarm := range s.replica.Alarms() {
		s.t.Errorf("replica: %s:\n%s", alarm, s.replica.Logs.Text())
	}
	if s.t.Failed() {
		s.t.Logf("the end of the log of the replica:\n%s", s.replica.Logs.Tail(40))
	}
}

// onAnyNode does something with a client of the first running node that lets it succeed.
func (s *stand) onAnyNode(do func(*testkit.Client) error) error {
	var problems []error
	for _, node := range s.nodes {
		if !node.Running() {
			continue
		}
		err := onNode(node, do)
		if err == nil {
			return nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", node.Node(), err))
	}
	return fmt.Errorf("on no node: %v", problems)
}

func onNode(node *testkit.Broker, do func(*testkit.Client) error) error {
	client, err := testkit.Dial(node.URL)
	if err != nil {
		return err
	}
	if err := do(client); err != nil {
		_ = client.Close()
		return err
	}
	return client.Close()
}

// running is a node to ask.
func (s *stand) running() *testkit.Broker {
	s.t.Helper()
	for _, node := range s.nodes {
		if node.Running() {
			return node
		}
	}
	s.t.Fatal("no node is running")
	return nil
}

// others are all nodes but one.
func (s *stand) others(node *testkit.Broker) []*testkit.Broker {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *testkit.Broker) bool { return n == node })
}

// moveLeader makes a node the queue's leader. There is no command for it in 3.10.
func (s *stand) moveLeader(to *testkit.Broker) {
	s.t.Helper()
	s.eventually("the leader is moved", func() error {
		leader, err := s.running().Ctl(s.ctx, "eval", fmt.Sprintf(
			`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), {Name, _} = amqqueue:get_pid(Q),
			_ = rabbit_quorum_queue:transfer_leadership(Q, '%[2]s'), {ok, _, {Name, Leader}} = ra:members({Name, '%[2]s'}), Leader.`,
			s.queue, to.Node()))
		if err == nil && strings.Trim(leader, "'\n") != to.Node() {
			err = fmt.Errorf("it is on %s", leader)
		}
		return err
	})
}

// consumersNode is the node that the replica's consumer is connected to.
func (s *stand) consumersNode() *testkit.Broker {
	s.t.Helper()
	var found *testkit.Broker
	s.eventually("the consumer is connected", func() error {
		out, err := s.running().Ctl(s.ctx, "list_connections", "--no-table-headers", "port", "client_properties")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			port, properties, _ := strings.Cut(line, "\t")
			for _, node := range s.nodes {
				_, own, _ := net.SplitHostPort(node.Addr)
				if port == own && strings.Contains(properties, "rabbitonce consumer") {
					found = node
					return nil
				}
			}
		}
		return fmt.Errorf("connections: %s", out)
	})
	return found
}

// must fails the test on an error.
func (s *stand) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) closed(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("close: %v", err)
	}
}

// eventually asks again and again what can only be asked of a server; the error says why it does not hold.
func (s *stand) eventually(what string, holds func() error) {
	s.t.Helper()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("%s: did not happen in time: %v", what, err)
		}
	}
}
