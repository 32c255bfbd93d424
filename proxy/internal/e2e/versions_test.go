package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestWhatABrokerCounts holds docs/compatibility.md, and what the program builds on, to the broker: how the ways in which a message comes back
// show in its headers. It is about RabbitMQ alone.
func TestWhatABrokerCounts(t *testing.T) {
	t.Parallel()
	classic := []amqp.Table{{}, {}, {}, {}} // and the redelivered flag
	version, err := shared.Broker.Version()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]amqp.Table{amqp.QueueTypeQuorum: quorumCounts(t, version), amqp.QueueTypeClassic: classic} {
		t.Run(kind, func(t *testing.T) {
			s := newStand(t, nil)
			s.must(s.client.Delete(s.queue))
			s.must(map[string]func(string, amqp.Table) error{
				amqp.QueueTypeQuorum: s.client.DeclareQuorum, amqp.QueueTypeClassic: s.client.DeclareClassic,
			}[kind](s.queue, nil))
			s.publish("a")
			connection, err := amqp.Dial(s.broker.URL)
			s.must(err)
			defer connection.Close()
			var got []amqp.Table
			for i, giveBack := range []func(*amqp.Channel, amqp.Delivery) error{
				func(_ *amqp.Channel, d amqp.Delivery) error { return d.Nack(false, true) },
				func(_ *amqp.Channel, d amqp.Delivery) error { return d.Reject(true) },
				func(ch *amqp.Channel, _ amqp.Delivery) error { return ch.Close() },
				func(_ *amqp.Channel, d amqp.Delivery) error { return d.Ack(false) },
			} {
				channel, err := connection.Channel()
				s.must(err)
				d := s.get(channel)
				if d.Redelivered != (i > 0) {
					t.Errorf("delivery %d: redelivered %t", i+1, d.Redelivered)
				}
				got = append(got, counts(d.Headers))
				s.must(giveBack(channel, d))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: headers of the first delivery, after a nack, a reject and a lost channel (-want +got):\n%s", version, diff)
			}
		})
	}
}

func quorumCounts(t *testing.T, version string) []amqp.Table {
	t.Helper()
	var major, minor int
	if _, err := fmt.Sscanf(version, "RabbitMQ %d.%d", &major, &minor); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	const delivery, acquired = "x-delivery-count", "x-acquired-count"
	switch {
	case major < 4:
		return []amqp.Table{{delivery: int64(0)}, {delivery: int64(1)}, {delivery: int64(2)}, {delivery: int64(3)}}
	case major == 4 && minor < 3:
		return []amqp.Table{{}, {delivery: int64(1)}, {delivery: int64(2)}, {delivery: int64(3)}}
	default: // a nack no longer counts as a delivery
		return []amqp.Table{
			{}, {acquired: int64(1)}, {acquired: int64(2), delivery: int64(1)}, {acquired: int64(3), delivery: int64(2)},
		}
	}
}

func counts(headers amqp.Table) amqp.Table {
	found := amqp.Table{}
	for _, name := range []string{"x-delivery-count", "x-acquired-count"} {
		if count, ok := headers[name]; ok {
			found[name] = count
		}
	}
	return found
}

// get takes one message of the stand's queue, unacknowledged.
func (s *stand) get(channel *amqp.Channel) amqp.Delivery {
	s.t.Helper()
	var delivery amqp.Delivery
	s.eventually("message is there", func() (bool, error) {
		d, ok, err := channel.Get(s.queue, false)
		delivery = d
		return ok, err
	})
	return delivery
}
