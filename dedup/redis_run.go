package dedup

import (
	"context"
	"errors"
	"sync"
)

func (b *redisBackend) run(ctx context.Context, group []*call) {
	if b.cluster == nil {
		b.runOn(ctx, b.single, group)
		return
	}
	parts, err := b.byPrimary(ctx, group)
	if err != nil {
		b.leave("")
		for _, c := range group {
			c.err = explain(err)
		}
		return
	}
	var work sync.WaitGroup
	for primary, part := range parts {
		if len(part) == len(group) {
			b.runOn(ctx, primary, part) // nobody to run beside
			break
		}
		work.Go(func() { b.runOn(ctx, primary, part) })
	}
	work.Wait()
	b.follow(ctx, group)
}

// byPrimary splits a group by the server that its keys are on. It fails for
// all or for none: when no node tells what the cluster looks like.
func (b *redisBackend) byPrimary(ctx context.Context, group []*call) (map[*redisNode][]*call, error) {
	parts := map[*redisNode][]*call{}
	for _, c := range group {
		primary, err := b.cluster.MasterForKey(ctx, c.op.key)
		if err != nil {
			return nil, err
		}
		parts[primary] = append(parts[primary], c)
	}
	return parts, nil
}

// runOn runs calls on one server.
func (b *redisBackend) runOn(ctx context.Context, server *redisNode, group []*call) {
	if right := b.perform(ctx, server, b.replicas, group); right {
		return
	}
	if b.cluster == nil {
		b.leave("") // Sentinel may have named more than one
		return
	}
	b.leave(server.Options().Addr)
}

// leave gives up the connections to an address, or all for "": the server is
// gone, or not the primary any more. The next group dials anew, and asks
// Sentinel or the cluster where to.
func (b *redisBackend) leave(address string) {
	b.dialer.condemn(address)
	if b.cluster != nil {
		b.cluster.ReloadState(context.Background()) // in the background
	}
}

// follow sends what a node of a cluster redirected to where it belongs. A
// redirected operation has not been executed, so this is no repeat. The library
// follows: MOVED, for a slot that is elsewhere, and ASK, for a key of a slot
// that is on its way.
func (b *redisBackend) follow(ctx context.Context, group []*call) {
	var redirected []*call
	for _, c := range group {
		if isRedirect(c.err) {
			redirected = append(redirected, c)
		}
	}
	if len(redirected) == 0 {
		return
	}
	b.cluster.ReloadState(ctx)
	b.perform(ctx, b.cluster, 0, redirected)
	if b.replicas == 0 {
		return
	}
	for _, c := range redirected {
		if c.op.confirm && c.err == nil {
			c.err = errMoving // which of the nodes to wait at is not known here
		}
	}
}

// errMoving is for what a cluster has, but perhaps on one node only.
var errMoving = errors.New("a primary has it, but its slot is moving; whether DEDUP_WAIT_REPLICAS have it is to be asked again")
