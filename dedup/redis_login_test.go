package dedup

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestARefusedLoginIsTheStoresTrouble: operations that share a round trip on a connection that the server refuses to set
// up have no answer. None of them may be taken for a key that holds something else.
func TestARefusedLoginIsTheStoresTrouble(t *testing.T) {
	server := newServer(t, "--requirepass", "right")
	for name, password := range map[string]Secret{"wrong password": "wrong", "no password": ""} {
		t.Run(name, func(t *testing.T) {
			cfg := server.config()
			cfg.RedisPassword = password
			s := openStore(t, cfg)
			for _, size := range []int{1, 2, 5} {
				group := make([]*call, size)
				for i := range group {
					group[i] = &call{op: operation{
						word: wordClaim, key: testKey(t), token: NewToken(),
						lease: lease.Milliseconds(), deadline: deadline.Milliseconds(), retention: keep.Milliseconds(),
					}}
				}
				s.backend.run(context.Background(), group)
				for i, c := range group {
					// Valkey 9.1 may close the connection of a client without a login before its refusal was read.
					named := c.err != nil && (strings.Contains(c.err.Error(), "REDIS_PASSWORD") || strings.Contains(c.err.Error(), "closed the connection"))
					if c.err == nil || isForeign(c.err) || i == 0 && !named {
						t.Errorf("operation %d of %d: %v", i+1, size, c.err)
					}
				}
			}
			if _, err := s.Look(context.Background(), testKey(t)); err == nil || errors.Is(err, ErrForeignRecord) {
				t.Errorf("look: %v", err)
			}
		})
	}
}
