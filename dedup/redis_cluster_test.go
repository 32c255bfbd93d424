package dedup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisCluster is a cluster of primaries, each with a third of the slots, and
// replicas, one for each of the first primaries.
type redisCluster struct {
	primaries, replicas []*redisServer
}

const slots = 16384

// startCluster starts three primaries and so many replicas, and returns when
// all of them agree that the cluster is complete.
func startCluster(parent string, replicas int, args ...string) (*redisCluster, error) {
	c := &redisCluster{}
	for i := range 3 + replicas {
		bus, err := freePort()
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		node, err := startRedis(parent, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
			"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
		}, args...)...)
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		if i < 3 {
			c.primaries = append(c.primaries, node)
		} else {
			c.replicas = append(c.replicas, node)
		}
		if err := c.join(node, bus, i); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	if err := within(20*time.Second, c.complete); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	for i, replica := range c.replicas {
		if err := within(20*time.Second, func() error { return c.replicate(replica, c.primaries[i]) }); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, nil
}

// join gives the i-th node its slots and lets it meet the first.
func (c *redisCluster) join(node *redisServer, bus string, i int) error {
	ctx := context.Background()
	client := node.client()
	defer client.Close()
	if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
		return err
	}
	if i < 3 {
		if err := client.ClusterAddSlotsRange(ctx, i*slots/3, (i+1)*slots/3-1).Err(); err != nil {
			return err
		}
	}
	first := c.primaries[0].client()
	defer first.Close()
	if i == 0 {
		return nil
	}
	return first.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", node.port(), bus).Err()
}

func (c *redisCluster) nodes() []*redisServer {
	return append(append([]*redisServer(nil), c.primaries...), c.replicas...)
}

// complete tells whether every node sees all of the others and all slots.
func (c *redisCluster) complete() error {
	for _, node := range c.nodes() {
		info, err := clusterInfo(node)
		if err != nil {
			return err
		}
		for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(c.nodes()))} {
			if !strings.Contains(info, want) {
				return fmt.Errorf("%s: no %q in %s", node.address, want, info)
			}
		}
	}
	return nil
}

func clusterInfo(node *redisServer) (string, error) {
	client := node.client()
	defer client.Close()
	return client.ClusterInfo(context.Background()).Result()
}

func (c *redisCluster) replicate(replica, primary *redisServer) error {
	ctx := context.Background()
	client, of := replica.client(), primary.client()
	defer client.Close()
	defer of.Close()
	id, err := of.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return err
	}
	if err := client.ClusterReplicate(ctx, id).Err(); err != nil {
		return err
	}
	return within(10*time.Second, func() error {
		if n, err := of.Wait(ctx, 1, time.Second).Result(); n != 1 || err != nil {
			return fmt.Errorf("replicas: %d, %v", n, err)
		}
		return nil
	})
}

func (c *redisCluster) stop() error {
	var problems []error
	for _, node := range c.nodes() {
		problems = append(problems, node.stop())
	}
	return errors.Join(problems...)
}

func (c *redisCluster) config() Config {
	return Config{
		Store: StoreRedis, RedisCluster: true,
		RedisURL: Secret("redis://" + c.primaries[1].address + "," + c.primaries[2].address),
	}
}

func (c *redisCluster) client() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{c.primaries[0].address}, DisableIdentity: true,
	})
}

// newCluster starts a cluster for one test.
func newCluster(t *testing.T, replicas int, args ...string) *redisCluster {
	t.Helper()
	c, err := startCluster(t.TempDir(), replicas, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// keyOn returns a key that no other test uses, of a slot of the i-th primary.
func keyOn(t *testing.T, c *redisCluster, i int) (key string, slot int) {
	t.Helper()
	client := c.primaries[0].client()
	defer client.Close()
	for n := 0; ; n++ {
		key = testKey(t) + strconv.Itoa(n)
		slot, err := client.ClusterKeySlot(context.Background(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if slot := int(slot); slot >= i*slots/3 && slot < (i+1)*slots/3 {
			return key, slot
		}
	}
}
