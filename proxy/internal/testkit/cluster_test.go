package testkit

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestBrokerCluster: a queue outlives any one node, and the nodes are one cluster again afterwards.
func TestBrokerCluster(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	cluster, err := StartBrokerCluster(ctx, 3, BrokerOptions{Logf: t.Logf})
	must(t, err)
	closing(t, cluster)
	client := openClient(t, cluster.Nodes[0].URL)
	must(t, client.DeclareQuorum("orders", amqp.Table{"x-quorum-initial-group-size": 3}))
	must(t, client.PublishTo(ctx, "orders", amqp.Publishing{Body: []byte("x")}))
	must(t, cluster.Nodes[0].Kill())
	taken, err := openClient(t, cluster.Nodes[1].URL).Take(ctx, "orders", 1)
	must(t, err)
	if string(taken[0].Body) != "x" {
		t.Errorf("took %q", taken[0].Body)
	}
	must(t, cluster.StartAll(ctx))
	for _, node := range cluster.Nodes {
		status, err := node.Ctl(ctx, "eval", "length(nodes()) + 1.") // nodes() is who this one is connected to
		if err != nil || strings.TrimSpace(status) != "3" {
			t.Errorf("%s sees %s nodes, %v", node.Node(), status, err)
		}
	}
}
