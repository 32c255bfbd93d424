package dedup

import (
	"context"
	"errors"
	"testing"
)

func TestForeignRecordsAreToldFromAStoreInTrouble(t *testing.T) {
	ctx := context.Background()
	client := newClient(t, shared)
	s := openStore(t, shared.config())
	for name, put := range map[string]func(key string) error{
		"empty":   func(key string) error { return client.Set(ctx, key, "", 0).Err() },
		"garbage": func(key string) error { return client.Set(ctx, key, "garbage", 0).Err() },
		"a list":  func(key string) error { return client.RPush(ctx, key, "x").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			key := testKey(t)
			if err := put(key); err != nil {
				t.Fatal(err)
			}
			defer client.Del(ctx, key)
			if _, err := s.Claim(ctx, request(key)); !errors.Is(err, ErrForeignRecord) {
				t.Errorf("claim: %v", err)
			}
		})
	}
	if _, err := openStore(t, Config{Store: StoreRedis, RedisURL: "redis://127.0.0.1:1"}).Claim(ctx, request("k")); err == nil || errors.Is(err, ErrForeignRecord) {
		t.Errorf("a store that is away: %v", err)
	}
}
