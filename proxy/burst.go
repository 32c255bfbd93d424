package proxy

import "time"

// A channel of RabbitMQ keeps what it is told to settle in a quorum queue to itself while more than 32 such commands wait
// for the queue, and drops what it keeps when it is closed
// (https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo_client.erl). Nothing tells a client of
// that: a call on the channel is answered meanwhile.
const (
	// commandsKept is how many settlements at once may be kept back.
	commandsKept = 32
	// commandsTake is how long a broker in good health needs for so many.
	commandsTake = 250 * time.Millisecond
)

// burst counts the settlements that were sent on a channel lately.
type burst struct {
	began time.Time
	count int
	until time.Time // an earlier burst needs until then
}

func (b *burst) add(now time.Time) {
	if now.Sub(b.began) > commandsTake {
		b.until = now.Add(b.quiet(now))
		b.began, b.count = now, 0
	}
	b.count++
}

// quiet is how long the channel has to stay open for the queue to have taken in what was sent.
func (b *burst) quiet(now time.Time) time.Duration {
	until := b.until
	if b.count > commandsKept/2 {
		until = b.began.Add(2 * commandsTake)
	}
	return max(0, until.Sub(now))
}
