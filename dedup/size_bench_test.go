package dedup

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverVariable is the host:port of a server to measure instead of the one
// that the tests start. Its databases 8 and 9 must be empty, and are emptied.
const serverVariable = "RABBITONCE_BENCH_REDIS"

// BenchmarkRecordBytes measures what a recorded ID costs the server, and what
// the least costs that the server can keep under the same key: one byte, with
// the same expiry. Run it for a million IDs with -benchtime 1000000x.
func BenchmarkRecordBytes(b *testing.B) {
	address := os.Getenv(serverVariable)
	if address == "" {
		server, err := startRedis(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = server.kill() })
		address = server.address
	}
	keys := make([]string, b.N)
	for i := range keys {
		keys[i] = Key("rabbitonce", "//orders", ID{Value: newUUID()})
	}
	least := bytesOf(b, address, 8, len(keys), func(client *redis.Client) {
		for chunk := range slices.Chunk(keys, 1000) {
			pipeline := client.Pipeline()
			for _, key := range chunk {
				pipeline.Set(context.Background(), key, "x", 48*time.Hour)
			}
			if _, err := pipeline.Exec(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	record := bytesOf(b, address, 9, len(keys), func(*redis.Client) { recordAll(b, address, keys) })
	b.ReportMetric(record, "bytes/record")
	b.ReportMetric(least, "bytes/least")
	b.ReportMetric(100*(record/least-1), "%over")
}

// recordAll claims every key and records a success, as messages do.
func recordAll(b *testing.B, address string, keys []string) {
	s, err := New(Config{Store: StoreRedis, RedisURL: Secret("redis://" + address + "/9")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	work := make(chan string)
	var workers sync.WaitGroup
	for range 128 {
		workers.Go(func() {
			for key := range work {
				r := request(key)
				r.Retention = 48 * time.Hour
				c, err := s.Claim(context.Background(), r)
				if err == nil {
					err = s.Succeed(context.Background(), key, 200, payload, r.Retention)
					c.Lease.Drop()
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	workers.Wait()
}

// bytesOf returns by how much a server's memory grows for each key.
func bytesOf(b *testing.B, address string, database, keys int, fill func(*redis.Client)) float64 {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address, DB: database, DisableIdentity: true})
	defer client.Close()
	if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
		b.Fatalf("database %d is not empty: %d keys, %v", database, n, err)
	}
	before := usedMemory(b, client)
	fill(client)
	after := usedMemory(b, client)
	if n, err := client.DBSize(ctx).Result(); n != int64(keys) || err != nil {
		b.Fatalf("%d keys of %d, %v", n, keys, err)
	}
	b.Cleanup(func() { emptied(b, address, database) }) // not now: a server may free it later
	return float64(after-before) / float64(keys)
}

func emptied(b *testing.B, address string, database int) {
	client := redis.NewClient(&redis.Options{Addr: address, DB: database, DisableIdentity: true, ReadTimeout: time.Minute})
	defer client.Close()
	if err := client.FlushDB(context.Background()).Err(); err != nil {
		b.Error(err)
	}
}

func usedMemory(b *testing.B, client *redis.Client) int64 {
	info, err := client.Info(context.Background(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func newUUID() string {
	var u [16]byte
	rand.Read(u[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
