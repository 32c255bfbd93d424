package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Catches: a publisher's header of the broker's name believed, a shape of it that crashes.
func TestBrokerReturns(t *testing.T) {
	for name, c := range map[string]struct {
		value       any
		redelivered bool
		want        int64
	}{
		"long":                   {int64(7), true, 7},
		"int":                    {int32(7), true, 7},
		"first delivery, forged": {int64(1_000_000_000), false, 0},
		"negative":               {int64(-1), true, -1},
		"missing":                {nil, true, 0},
		"text":                   {"7", true, 0},
		"list":                   {[]any{table{"count": int64(7)}}, true, 0},
		"time":                   {time.Unix(7, 0), true, 0},
		"fraction":               {7.5, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := &delivery{Redelivered: c.redelivered, Headers: table{}}
			if c.value != nil {
				d.Headers["x-delivery-count"] = c.value
			}
			if got := brokerReturns(d); got != c.want {
				t.Errorf("%d returns, want %d", got, c.want)
			}
		})
	}
	if got := brokerReturns(&delivery{Redelivered: true}); got != 0 {
		t.Errorf("%d returns of a message without headers, want 0", got)
	}
}

// Catches: an arrival limit that a shutdown or a pause can bring a message to.
func TestReturnLimitsAreInOrder(t *testing.T) {
	if returnsLimit >= arrivalLimit {
		t.Errorf("arrivalLimit %d, want more than returnsLimit %d", arrivalLimit, returnsLimit)
	}
}

// Catches: a delivery that arrives while the session ends given back past the limit.
func TestAnArrivalAtTheEndOfASession(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for count, wantStarted := range map[int64]bool{0: false, returnsLimit - 1: false, returnsLimit: true, returnsLimit + 1: true} {
		s := newSession(&consumer{}, 1)
		started := false
		s.takeIn(ended, &delivery{Redelivered: true, Headers: table{"x-delivery-count": count}}, func(context.Context, *delivery) { started = true })
		if started != wantStarted || len(s.settled) == 1 == wantStarted {
			t.Errorf("after %d returns: started %t, given back %t, want one or the other, started %t", count, started, len(s.settled) == 1, wantStarted)
		}
	}
}

// Catches: a message that came back often worked on at once because RETRY_HOLD is longer than the wait that it should take.
func TestAnArrivalThatCameBackOften(t *testing.T) {
	for _, hold := range []string{"1s", "30s", "10m"} {
		j, fake := &journal{}, newFakeBroker()
		b := newBench(t, j, "RETRY_HOLD="+hold)
		b.queue.publisher = fake.publisher(t)
		d := &delivery{DeliveryTag: 1, MessageId: "m", Body: []byte("200"), Redelivered: true, Headers: table{"x-delivery-count": int64(arrivalLimit)}}
		b.queue.begin(b.work, b.hold, b.session, d)
		if got := b.settled(t, 1)[1]; got != "ack" || len(j.seen()) != 0 {
			t.Errorf("RETRY_HOLD=%s: %s after %v", hold, got, j.seen())
		}
		if diff := cmp.Diff([]string{"orders.wait.30s"}, fake.declared); diff != "" {
			t.Errorf("RETRY_HOLD=%s: moved to (-want +got):\n%s", hold, diff)
		}
	}
}
