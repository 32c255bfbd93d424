package dedup

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// advise warns of an eviction policy under which the server may drop records.
// A server that denies the question gets no warning.
func (b *redisBackend) advise(ctx context.Context) []string {
	policy := ""
	if b.cluster == nil {
		policy = evictionPolicy(ctx, b.single)
	} else {
		var mu sync.Mutex
		_ = b.cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redisNode) error {
			if p := evictionPolicy(ctx, primary); evicts(p) {
				mu.Lock()
				defer mu.Unlock()
				policy = p
			}
			return nil
		})
	}
	if !evicts(policy) {
		return nil
	}
	return []string{fmt.Sprintf("Redis has maxmemory-policy %s: when its memory is full it drops records, and their messages are executed again; set maxmemory-policy noeviction", policy)}
}

func evicts(policy string) bool { return policy != "" && policy != "noeviction" }

func evictionPolicy(ctx context.Context, server *redisNode) string {
	const field = "maxmemory_policy:"
	info, err := server.Info(ctx, "memory").Result()
	if err == nil {
		for line := range strings.Lines(info) {
			if policy, ok := strings.CutPrefix(line, field); ok {
				return strings.TrimSpace(policy)
			}
		}
	}
	return server.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]
}
