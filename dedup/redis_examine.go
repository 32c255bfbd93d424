package dedup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

func (b *redisBackend) examine(ctx context.Context) ([]Server, error) {
	if b.cluster == nil {
		server, err := examineServer(ctx, b.single)
		return []Server{server}, err
	}
	var mu sync.Mutex
	var all []Server
	err := b.cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redisNode) error {
		server, err := examineServer(ctx, primary)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, server)
		return err
	})
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(a.Address, b.Address) })
	return all, explain(err)
}

func examineServer(ctx context.Context, node *redisNode) (Server, error) {
	server := Server{Address: node.Options().Addr}
	for i := range roundTrips {
		began := time.Now()
		clock, err := node.Time(ctx).Result()
		trip := time.Since(began)
		if err != nil {
			return server, fmt.Errorf("%s: %w", server.Address, explain(err))
		}
		if i == 0 || trip < server.RoundTrip { // the first may have had to connect
			server.RoundTrip = trip
			server.Ahead = clock.Sub(began.Add(trip / 2))
		}
	}
	if info, err := node.Info(ctx).Result(); err == nil { // else the user may not ask
		server.read(info)
	}
	return server, nil
}
