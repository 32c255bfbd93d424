package proxy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errLinkLost = errors.New("connection lost")

// TestAStuckQueueHoldsUpNobodyElse has more messages for a queue that never confirms than may be under way.
func TestAStuckQueueHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		b.answer("stuck", silence(t))
		var stuck sync.WaitGroup
		for range 10 {
			stuck.Go(func() {
				began := time.Now()
				err := p.publish(t.Context(), destination{queue: "stuck"}, letter{})
				if took := time.Since(began); !errors.Is(err, errNoConfirm) || took%confirmTimeout != 0 || took == 0 {
					t.Errorf("after %v: %v", took, err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if err := p.publish(t.Context(), destination{queue: "good"}, letter{}); err != nil || time.Since(began) > 0 {
			t.Errorf("the other queue: %v after %v", err, time.Since(began))
		}
		stuck.Wait()
		synctest.Wait()
		if b.most["stuck"] != outletsPerQueue {
			t.Errorf("%d under way to the stuck queue at once, want %d", b.most["stuck"], outletsPerQueue)
		}
		if len(b.links) != 1 || b.latest().isDead() {
			t.Error("the connection was given up, and not the channels alone")
		}
		if b.closed != 10 {
			t.Errorf("%d channels closed of 10 on which a confirm may still come", b.closed)
		}
	})
}

func TestChannelsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		for _, queue := range []string{"a", "b", "a", "b"} {
			if err := p.publish(t.Context(), destination{queue: queue}, letter{}); err != nil {
				t.Error(err)
			}
		}
		if b.outlets != 1 || len(b.declared) != 2 {
			t.Errorf("%d channels and %v declared, want 1 and each queue once", b.outlets, b.declared)
		}
	})
}

// TestAReturnedMessageHasItsQueueDeclaredAgain deletes the queue after it was seen.
func TestAReturnedMessageHasItsQueueDeclaredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		to := destination{queue: "a"}
		if err := p.publish(t.Context(), to, letter{}); err != nil {
			t.Fatal(err)
		}
		returns := 1
		b.answer("a", func() error {
			if returns--; returns >= 0 {
				return errUnroutable
			}
			return nil
		})
		if err := p.publish(t.Context(), to, letter{}); err != nil || len(b.declared) != 2 {
			t.Errorf("%v, declared %v", err, b.declared)
		}
		b.answer("a", func() error { return errUnroutable })
		if err := p.publish(t.Context(), to, letter{}); !errors.Is(err, errUnroutable) {
			t.Errorf("returned twice: %v", err)
		}
	})
}

// TestAPublishThatNobodyWaitsForGoesOn ends a publish while its confirm is on the way: the channel must not be used for
// another message before that, nor be lost.
func TestAPublishThatNobodyWaitsForGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		confirm := make(chan error)
		b.answer("a", func() error { return <-confirm })
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- p.publish(ctx, destination{queue: "a"}, letter{}) }()
		synctest.Wait()
		stop(errSessionEnded)
		if err := <-ended; !errors.Is(err, errSessionEnded) {
			t.Errorf("got %v", err)
		}
		if err := p.publish(t.Context(), destination{queue: "b"}, letter{}); err != nil || b.outlets != 2 {
			t.Errorf("%v, %d channels, want another one", err, b.outlets)
		}
		confirm <- nil
		synctest.Wait()
		b.answer("a", nil)
		for _, queue := range []string{"a", "b"} {
			if err := p.publish(t.Context(), destination{queue: queue}, letter{}); err != nil {
				t.Error(err)
			}
		}
		if b.outlets != 2 || b.closed != 0 {
			t.Errorf("%d channels, %d closed", b.outlets, b.closed)
		}
	})
}

// TestAnAlarmIsWaitedOut blocks publishers for longer than a confirm may take: neither is the message under way given
// up, nor are others sent after it.
func TestAnAlarmIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		var alarms []string
		p.alarm = func(err error) { alarms = append(alarms, errText(err)) }
		confirm := make(chan error)
		b.answer("a", func() error { return <-confirm })
		results := make(chan error, 2)
		go func() { results <- p.publish(t.Context(), destination{queue: "a"}, letter{}) }()
		synctest.Wait()
		b.latest().notices <- blocking{Active: true, Reason: "low on memory"}
		synctest.Wait()
		go func() { results <- p.publish(t.Context(), destination{queue: "b"}, letter{}) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(results) != 0 || b.most["b"] != 0 || !p.isBlocked() {
			t.Fatalf("%d results, %d sent to b, blocked %v, during the alarm", len(results), b.most["b"], p.isBlocked())
		}
		b.latest().notices <- blocking{}
		time.Sleep(confirmTimeout - time.Second) // the backlog of the alarm
		confirm <- nil
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(alarms) != 2 || !strings.Contains(alarms[0], "low on memory") || alarms[1] != "" || p.isBlocked() {
			t.Errorf("alarms %q, blocked %v", alarms, p.isBlocked())
		}
	})
}

// TestTheEndOfAnOldConnectionClearsNothing loses a blocked connection; the next one is blocked at once.
func TestTheEndOfAnOldConnectionClearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		var blockedNow bool
		p.alarm = func(err error) { blockedNow = err != nil }
		b.answer("a", silence(t))
		go func() { _ = p.publish(t.Context(), destination{queue: "a"}, letter{}) }()
		synctest.Wait()
		old := b.latest()
		old.notices <- blocking{Active: true}
		synctest.Wait()
		if !blockedNow {
			t.Fatal("not blocked")
		}
		old.once.Do(func() { close(old.dead) }) // the notices end later
		ended := make(chan error)
		go func() { ended <- p.publish(t.Context(), destination{queue: "b"}, letter{}) }()
		synctest.Wait()
		if len(b.links) != 1 {
			t.Fatal("a new connection before the old one's notices have ended")
		}
		close(old.notices)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		b.latest().notices <- blocking{Active: true}
		synctest.Wait()
		if !blockedNow || !p.isBlocked() {
			t.Error("the new connection's alarm is not seen")
		}
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		b.answer("a", silence(t))
		results := make(chan error, 6)
		for range 6 {
			go func() { results <- p.publish(t.Context(), destination{queue: "a"}, letter{}) }()
		}
		synctest.Wait()
		p.closeNow()
		for range 6 {
			if err := <-results; !errors.Is(err, errLinkLost) && !errors.Is(err, errClosing) {
				t.Errorf("got %v", err)
			}
		}
		if err := p.publish(t.Context(), destination{queue: "b"}, letter{}); !errors.Is(err, errClosing) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		is   error
		says string
	}{
		"too large": {
			&closing{Server: true, Code: 406, Reason: "PRECONDITION_FAILED - message size 200 is larger than configured max size 100"},
			errTooLarge, "raise max_message_size",
		},
		"unlike": {
			&closing{Server: true, Code: 406, Reason: "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'a'"},
			errUnlike, "delete it when it is empty",
		},
		"anything else of that code": {&closing{Server: true, Code: 406, Reason: "PRECONDITION_FAILED - unknown delivery tag"}, nil, "unknown delivery tag"},
		"another code":               {&closing{Server: true, Code: 404, Reason: "NOT_FOUND - larger than configured max size"}, nil, "NOT_FOUND"},
		"none of the broker's":       {errNacked, errNacked, "length limit"},
	} {
		got := publishError(brokerError(tt.err), 200)
		if !strings.Contains(got.Error(), tt.says) || (tt.is != nil && !errors.Is(got, tt.is)) {
			t.Errorf("%s: %v", name, got)
		}
		if tt.is == nil && (errors.Is(got, errTooLarge) || errors.Is(got, errUnlike)) {
			t.Errorf("%s is taken for another: %v", name, got)
		}
	}
	if publishError(nil, 1) != nil {
		t.Error("a confirm is no refusal")
	}
}

func TestADeadLetterQueueHasNoLimitWhereThereIsOne(t *testing.T) {
	for version, want := range map[string]any{"3.10.8": nil, "3.13.7": nil, "4.0.5": int64(-1), "4.3.1-rc.1": int64(-1), "10.0": int64(-1), "": nil, "x": nil} {
		to := deadLetters("q.dead")
		if got := to.on(version).arguments["x-delivery-limit"]; got != want {
			t.Errorf("version %q: limit %v, want %v", version, got, want)
		}
		if _, there := to.arguments["x-delivery-limit"]; there {
			t.Errorf("version %q changed the original", version)
		}
		if got := waitQueueOf("q", time.Second).on(version); len(got.arguments) != len(waitArguments("q", time.Second)) {
			t.Errorf("version %q changes a wait queue's arguments, which must stay what they are over an upgrade", version)
		}
	}
}

// TestAQueueIsDeclaredOnce publishes several messages to a queue that nobody has seen.
func TestAQueueIsDeclaredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		declared := make(chan struct{})
		b.declares = declared
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := p.publish(t.Context(), destination{queue: "a"}, letter{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(declared)
		all.Wait()
		if len(b.declared) != 1 {
			t.Errorf("declared %v", b.declared)
		}
	})
}

// TestAChannelThatIsOwedAConfirmIsNotUsedAgain holds what the broker's channel says of itself.
func TestAChannelThatIsOwedAConfirmIsNotUsedAgain(t *testing.T) {
	if c := (&confirming{ch: &channel{}}); !c.reusable() {
		t.Error("an open channel is not used again")
	}
	if c := (&confirming{ch: &channel{}, owed: true}); c.reusable() {
		t.Error("a channel is used again on which the word on an earlier message is still to come")
	}
}

// TestANewQueueSettlesBeforeItIsUsed: whoever sees a queue of ours for the first time does not know how old it is.
func TestANewQueueSettlesBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		p := b.publisher(t)
		publish := func(to destination, want time.Duration) {
			t.Helper()
			began := time.Now()
			if err := p.publish(t.Context(), to, letter{}); err != nil || time.Since(began) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(began), want)
			}
		}
		own := destination{queue: "a", arguments: table{"x-queue-type": "quorum"}}
		publish(destination{queue: "source"}, 0)
		publish(own, settlingTime)
		publish(own, 0)
		b.latest().end()
		publish(own, settlingTime) // over another connection: it may have been declared anew meanwhile
		publish(own, 0)
		returns := 1
		b.answer("a", func() error {
			if returns--; returns >= 0 {
				return errUnroutable
			}
			return nil
		})
		publish(own, settlingTime) // it was deleted, and declared anew
	})
}
