package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// maxStep bounds a step of the ladder; a message-ttl is limited by the broker to some weeks.
const maxStep = 7 * 24 * time.Hour

// Ladder is the pauses between the attempts of one message; the last step repeats.
type Ladder []time.Duration

// EnvDecode implements envconfig's decoder: durations, comma-separated.
func (l *Ladder) EnvDecode(value string) error {
	*l = nil
	for part := range strings.SplitSeq(value, ",") {
		d, err := parseDuration(part)
		if err != nil {
			return err
		}
		if d <= 0 {
			return fmt.Errorf("%v: a step must be longer than 0", d)
		}
		*l = append(*l, d)
	}
	return nil
}

// step is the pause after n attempts of its kind, n from 1.
func (l Ladder) step(n int) time.Duration {
	return l[min(max(n, 1), len(l))-1]
}

// jitter spreads d by a fifth to either side, so that messages that failed together do not come back together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// shortened is d less up to a fifth, for the same reason.
func shortened(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.2*rand.Float64()))
}

// backoff is a pause that doubles from first to last, for things that are tried for ever.
type backoff struct {
	first, last time.Duration
	next        time.Duration
}

// pause is the next pause, jittered.
func (b *backoff) pause() time.Duration {
	if b.next == 0 {
		b.next = b.first
	}
	d := b.next
	b.next = min(2*b.next, b.last)
	return jitter(d)
}

func (b *backoff) reset() { b.next = 0 }
