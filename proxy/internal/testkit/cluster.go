package testkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// BrokerCluster is a RabbitMQ cluster, all of its nodes on loopback. Each can be stopped, killed and started by itself.
type BrokerCluster struct {
	Nodes []*Broker

	mapper *portMapper // through it the nodes find each other, also again after a restart
}

// StartBrokerCluster returns a cluster whose nodes all accept connections and know each other.
func StartBrokerCluster(ctx context.Context, nodes int, options BrokerOptions) (*BrokerCluster, error) {
	programs, err := findBrokerPrograms(options)
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	mapper, err := startPortMapper(ctx, programs)
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	c := &BrokerCluster{mapper: mapper}
	for range nodes {
		c.Nodes = append(c.Nodes, newBroker(programs, options))
	}
	if err := c.form(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster: %w", err), c.Close())
	}
	return c, nil
}

// form starts the nodes at once: each is told of all, and they make one cluster by themselves
// (https://www.rabbitmq.com/docs/cluster-formation#peer-discovery-classic-config).
func (c *BrokerCluster) form(ctx context.Context, options BrokerOptions) error {
	options.cookie = rand.Text()
	options.Config = append(slices.Clone(options.Config), "cluster_formation.peer_discovery_backend = classic_config")
	for i, node := range c.Nodes {
		if err := node.reserve(); err != nil {
			return err
		}
		options.Config = append(options.Config, fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s", i+1, node.node))
	}
	for _, node := range c.Nodes {
		if err := node.prepare(c.mapper.port, options); err != nil {
			return err
		}
	}
	if err := c.StartAll(ctx); err != nil {
		return err
	}
	// A node that found nobody would have made a cluster of its own.
	_, err := c.Nodes[0].Ctl(ctx, "await_online_nodes", strconv.Itoa(len(c.Nodes)), "--timeout", "60")
	return err
}

// StartAll starts the nodes that do not run, all at once: some wait for others.
func (c *BrokerCluster) StartAll(ctx context.Context) error {
	problems := make([]error, len(c.Nodes))
	var starts sync.WaitGroup
	for i, node := range c.Nodes {
		if !node.Running() {
			starts.Go(func() { problems[i] = startAgain(ctx, node) })
		}
	}
	starts.Wait()
	return errors.Join(problems...)
}

// startAgain does what a service manager would: a node that meets another one which is just coming up may give up (node_not_running).
func startAgain(ctx context.Context, node *Broker) error {
	var err error
	for range 3 {
		if err = node.Start(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		node.logf("starting %s again: %v", node.Addr, err)
	}
	return err
}

// Addrs are the addresses of all nodes, comma-separated, as RABBITMQ_URL takes them.
func (c *BrokerCluster) Addrs() string {
	var addrs []string
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr)
	}
	return strings.Join(addrs, ",")
}

// URL has all nodes' addresses.
func (c *BrokerCluster) URL() string { return c.Nodes[0].URLVia(c.Addrs()) }

// Close kills all nodes and removes all that belongs to them.
func (c *BrokerCluster) Close() error {
	var err error
	for _, node := range c.Nodes {
		err = errors.Join(err, node.Close())
	}
	return errors.Join(err, c.mapper.close())
}
