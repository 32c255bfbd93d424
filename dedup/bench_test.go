package dedup

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BenchmarkClaimAndRecord measures whole messages: a claim and a recorded
// success each, at several numbers in flight. For comparison, "ungrouped" sends
// every operation on its own, and "library" leaves the grouping to the Redis
// library's own auto-pipelining.
func BenchmarkClaimAndRecord(b *testing.B) {
	for _, inFlight := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("grouped/%d", inFlight), func(b *testing.B) {
			s, err := New(shared.config())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			measure(b, inFlight, s.await)
		})
		b.Run(fmt.Sprintf("library/%d", inFlight), func(b *testing.B) { measure(b, inFlight, libraryDo(b)) })
		b.Run(fmt.Sprintf("ungrouped/%d", inFlight), func(b *testing.B) {
			options, err := redisOptions(shared.config())
			if err != nil {
				b.Fatal(err)
			}
			options.PoolSize = inFlight
			backend := newRedisWith(shared.config(), options)
			defer backend.close()
			measure(b, inFlight, func(ctx context.Context, op operation, _ time.Time) (answer, error) {
				c := &call{op: op}
				backend.run(ctx, []*call{c})
				return c.answer, c.err
			})
		})
	}
}

// libraryDo returns what runs an operation by the library's auto-pipelining,
// with its own settings for it.
func libraryDo(b *testing.B) func(context.Context, operation, time.Time) (answer, error) {
	settings, err := redisOptions(shared.config())
	if err != nil {
		b.Fatal(err)
	}
	options := settings.Simple()
	options.PipelinePoolSize = 0 // the library's default
	client := redis.NewClient(options)
	grouping, err := client.AutoPipeline()
	if err != nil {
		b.Fatal(err)
	}
	if err := client.ScriptLoad(context.Background(), protocolSource).Err(); err != nil {
		b.Fatal(err)
	}
	hash := redis.NewScript(protocolSource).Hash()
	b.Cleanup(func() {
		_ = grouping.Close()
		_ = client.Close()
	})
	return func(ctx context.Context, op operation, _ time.Time) (answer, error) {
		command := redis.NewSliceCmd(ctx, arguments("EVALSHA", hash, []*call{{op: op}})...)
		if err := grouping.Process(ctx, command); err != nil {
			return answer{}, err
		}
		return readAnswer(command.Val(), 0)
	}
}

func measure(b *testing.B, inFlight int, do func(context.Context, operation, time.Time) (answer, error)) {
	ctx := context.Background()
	work := make(chan struct{}, inFlight)
	var workers sync.WaitGroup
	before := processorTime()
	start := time.Now()
	b.ReportAllocs()
	b.ResetTimer()
	for range inFlight {
		workers.Go(func() {
			for range work {
				claim := operation{
					word: wordClaim, key: "test:bench:" + NewDeadID(), token: NewToken(), compare: true,
					lease: 30_000, deadline: 60_000, retention: 60_000,
				}
				done := operation{word: wordSucceed, key: claim.key, status: 200, retention: 60_000}
				for _, op := range []operation{claim, done} {
					if _, err := do(ctx, op, time.Now()); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	workers.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "messages/s")
	b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "client-cpu-µs/message")
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
