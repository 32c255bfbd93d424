package proxy

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/testkit"
)

// BenchmarkDeadLetters publishes letters from four goroutines, as four worker slots do whose messages are rejected, to
// one quorum queue of a broker of its own, and reports how many are confirmed in a second.
func BenchmarkDeadLetters(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	server, err := testkit.StartBroker(ctx, testkit.BrokerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	p := newPublisher(newBroker(&Config{BrokerConfig: BrokerConfig{RabbitMQURL: dedup.Secret(server.URL)}}))
	defer p.closeNow()
	to := destination{queue: "bench.dead", arguments: table{"x-queue-type": "quorum"}}
	send := func(i int) error {
		return p.publish(ctx, to, letter{MessageId: fmt.Sprint(i), DeliveryMode: persistent, Body: make([]byte, 1024)})
	}
	if err := send(0); err != nil { // declares the queue
		b.Fatal(err)
	}
	b.ResetTimer()
	began := time.Now()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := worker; i < b.N; i += 4 {
				if err := send(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "letters/s")
}
