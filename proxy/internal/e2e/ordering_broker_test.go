package e2e

import (
	"slices"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Not about the program but about what it relies on: what is unsettled when its channel closes comes back in its order, before all that follows, to a
// consumer that takes no less at a time, again and again.
func TestTheBrokerReturnsInOrder(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	connection, err := amqp.Dial(s.broker.URL)
	s.must(err)
	t.Cleanup(func() { s.closed(connection.Close()) })
	classic := s.queue + ".classic"
	s.must(s.client.DeclareClassic(classic, nil))
	orders := ids("order", 60)
	for _, queue := range []string{s.queue, classic} {
		for _, id := range orders {
			s.must(s.client.PublishTo(s.ctx, queue, message(id)))
		}
		rest := orders
		for _, prefetch := range []int{40, 40, 50} { // more than 32: Erlang's maps lose their order there
			got := s.holdAndClose(connection, queue, prefetch, 3)
			if !slices.Equal(got, rest[:prefetch]) {
				t.Fatalf("%s, prefetch %d: got %v", queue, prefetch, got)
			}
			rest = rest[3:]
		}
		if got := s.holdAndClose(connection, queue, len(rest), len(rest)); !slices.Equal(got, rest) {
			t.Fatalf("%s, the rest: got %v", queue, got)
		}
	}
}

// holdAndClose takes as many deliveries as the prefetch allows, acks the first of them, and closes the channel.
func (s *stand) holdAndClose(connection *amqp.Connection, queue string, prefetch, acked int) []string {
	s.t.Helper()
	channel, err := connection.Channel()
	s.must(err)
	s.must(channel.Qos(prefetch, 0, false))
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	s.must(err)
	var taken []amqp.Delivery
	for len(taken) < prefetch {
		select {
		case d := <-deliveries:
			taken = append(taken, d)
		case <-s.ctx.Done():
			s.t.Fatalf("%s: %d of %d deliveries", queue, len(taken), prefetch)
		}
	}
	s.must(taken[acked-1].Ack(true))
	s.must(channel.Close())
	var got []string
	for _, d := range taken {
		got = append(got, d.MessageId)
	}
	return got
}
