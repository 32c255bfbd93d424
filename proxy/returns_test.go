package proxy

import (
	"testing"
	"time"
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
