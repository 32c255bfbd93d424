package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"rabbitonce/proxy/internal/fakebroker"
	judge "rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/simnet"
)

// simFault is one that a schedule has. It comes at a time, or a little after a instant of its kind.
type simFault struct {
	kind    faultKind
	slot    int           // of the replica that it hits
	at      time.Duration // not before
	instant instant       // instantNone: at the time itself
	nth     int           // which one, counted from the time on
	after   time.Duration // the instant
	span    time.Duration
	all     bool // every replica
	variant int
}

// instant is something that a fault can follow.
type instant uint8

const (
	instantNone      instant = iota
	instantSent              // a request left a replica
	instantWorked            // the service ended its work
	instantStored            // the store did what it was asked
	instantPublished         // the broker has got a message, and not confirmed it
	instantKinds     = iota
)

type faultKind uint8

const (
	faultKill faultKind = iota
	faultTerminate
	faultFreeze
	faultCutBroker
	faultStallBroker
	faultLoseBroker
	faultStopBroker
	faultKillBroker
	faultCancel
	faultAlarm
	faultStoreAway
	faultStoreSilent
	faultStoreSlow
	faultStoreLoses
	faultServiceDown
	faultServiceCut
	faultKinds = iota
)

var faultNames = [...]string{
	"kill", "terminate", "freeze", "cut broker", "stall broker", "lose broker", "stop broker", "kill broker", "cancel", "alarm",
	"store away", "store silent", "store slow", "store loses", "service down", "service cut",
}

// hitsOne tells whether only one replica has it.
func (f *simFault) hitsOne() bool {
	switch f.kind {
	case faultKill, faultTerminate, faultFreeze:
		return true
	case faultCutBroker, faultStallBroker, faultLoseBroker, faultStoreAway, faultStoreSilent, faultServiceCut:
		return !f.all
	}
	return false
}

func (k faultKind) String() string { return faultNames[k] }

// drawFault makes one: half of them hit exact moments.
func (s *schedule) drawFault(r *rand.Rand) simFault {
	f := simFault{
		kind: faultKind(r.IntN(faultKinds)), slot: r.IntN(s.replicas), at: between(r, 0, 8*time.Second),
		span: between(r, 10*time.Millisecond, pick(r, 200*time.Millisecond, 3*time.Second, 15*time.Second)), all: r.IntN(2) == 0, variant: r.IntN(4),
	}
	if r.IntN(3) > 0 {
		f.instant, f.nth = instant(1+r.IntN(int(instantKinds)-1)), 1+r.IntN(10)
		f.after = between(r, 1, pick(r, time.Microsecond, 300*time.Microsecond, time.Millisecond, 10*time.Millisecond))
	}
	if f.instant == instantPublished && r.IntN(2) == 0 {
		f.kind = faultKillBroker
	}
	switch r.IntN(12) { // what the promises are most about
	case 0, 1:
		f.kind = faultKill
	case 2:
		f.kind, f.all, f.span = faultStoreSilent, false, between(r, s.lease, 2*s.lease+s.timeout)
	case 3:
		f.kind, f.span = faultFreeze, between(r, s.lease, 2*s.lease+s.timeout)
	}
	if s.policy == judge.Lookup && f.kind == faultFreeze {
		f.kind = faultKill
	}
	return f
}

// awaited is a fault whose instant has not come.
type awaited struct {
	fault   *simFault
	left    int
	reached chan struct{} // closed when it has
}

// plant has every fault happen in its time.
func (w *world) plant() {
	for i := range w.schedule.faults {
		f := &w.schedule.faults[i]
		w.work.Go(func() {
			time.Sleep(f.at)
			if f.instant == instantNone {
				w.inject(f)
				return
			}
			reached := make(chan struct{})
			w.mu.Lock()
			w.awaited = append(w.awaited, &awaited{f, f.nth, reached})
			w.mu.Unlock()
			select {
			case <-reached:
				time.Sleep(f.after)
			case <-time.After(20 * time.Second): // it is not coming
			}
			w.inject(f)
		})
	}
}

// happened counts a instant down.
func (w *world) happened(m instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited = slices.DeleteFunc(w.awaited, func(a *awaited) bool {
		if a.fault.instant != m {
			return false
		}
		a.left--
		if a.left == 0 {
			close(a.reached)
		}
		return a.left == 0
	})
}

// inject does it, and undoes it after its span.
func (w *world) inject(f *simFault) {
	w.mu.Lock()
	r := w.slots[f.slot]
	w.mu.Unlock()
	w.logf("FAULT %v on %s for %v (all %t)", f.kind, r.name, f.span, f.all)
	began := time.Now()
	w.act(f, r)
	w.logf("fault %v is over", f.kind)
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faultsOver++
	}()
	for _, part := range partsOf(f.kind) {
		entry := judge.Fault{Kind: fmt.Sprint(f.kind), Part: part, Span: judge.Span{From: began, To: time.Now()}}
		if f.hitsOne() {
			entry.Process = r.name
		}
		w.mu.Lock()
		w.history.Faults = append(w.history.Faults, entry)
		w.mu.Unlock()
	}
}

// partsOf is what a kind of fault comes between. What is undone lives on for a little: connections come back, and what was
// sent before is on its way.
func partsOf(k faultKind) []judge.Part {
	switch k {
	case faultKill, faultTerminate:
		return []judge.Part{judge.PartProcess}
	case faultFreeze:
		return []judge.Part{judge.PartStore, judge.PartBroker, judge.PartService}
	case faultStoreAway, faultStoreSilent, faultStoreSlow, faultStoreLoses:
		return []judge.Part{judge.PartStore}
	case faultServiceDown, faultServiceCut:
		return []judge.Part{judge.PartService}
	}
	return []judge.Part{judge.PartBroker}
}

func (w *world) act(f *simFault, r *replica) {
	host := r.name
	if f.all {
		host = ""
	}
	switch f.kind {
	case faultKill:
		w.kill(r)
		time.Sleep(f.span)
		w.start(f.slot, r)
	case faultTerminate:
		r.stop()
		<-r.gone
		time.Sleep(f.span)
		w.start(f.slot, r)
	case faultFreeze:
		goOn := w.net.Freeze(r.name, simServiceAddress)
		time.Sleep(f.span)
		goOn()
	case faultCutBroker:
		w.cut(w.someLegs(host, simBrokerAddress, f.variant))
	case faultStallBroker, faultLoseBroker:
		w.stall(f, host)
	case faultStopBroker, faultKillBroker:
		w.endBroker(f)
	case faultCancel:
		w.broker.CancelConsumers(simQueue)
	case faultAlarm:
		w.broker.SetAlarm(true)
		time.Sleep(f.span)
		w.broker.SetAlarm(false)
	case faultServiceDown:
		w.net.Refuse(simServiceAddress, true)
		w.service.crash()
		time.Sleep(f.span)
		w.net.Refuse(simServiceAddress, false)
	case faultServiceCut:
		w.cut(w.someLegs(host, simServiceAddress, f.variant))
	default:
		w.breakStore(f, host)
	}
}

func (w *world) cut(legs []*simnet.Leg) {
	for _, leg := range legs {
		leg.Cut()
	}
}

// someLegs are connections between a host and an address: all of them, or some, so that what a process publishes and what it
// consumes may have different fates.
func (w *world) someLegs(host, to string, variant int) []*simnet.Leg {
	return slices.DeleteFunc(w.net.Legs(host, to), func(*simnet.Leg) bool { return variant > 0 && w.chance(2) })
}

// stall keeps connections to the broker from carrying anything, for a while or for good.
func (w *world) stall(f *simFault, host string) {
	legs := w.someLegs(host, simBrokerAddress, f.variant)
	for _, leg := range legs {
		if f.kind == faultLoseBroker {
			leg.Lose()
		} else {
			leg.Stall(true)
		}
	}
	time.Sleep(f.span)
	for _, leg := range legs {
		if f.kind == faultLoseBroker {
			leg.Cut()
		} else {
			leg.Stall(false)
		}
	}
}

// endBroker stops or kills the broker for a while. A node that is killed may lose what it has not confirmed, and what it was
// told in the last moments.
func (w *world) endBroker(f *simFault) {
	if f.kind == faultStopBroker {
		w.broker.Stop()
	} else {
		half := func() bool { return w.chance(2) }
		w.broker.Kill(fakebroker.Damage{Uncommitted: half, Acknowledged: half})
	}
	time.Sleep(f.span)
	w.broker.Start()
}

func (w *world) breakStore(f *simFault, host string) {
	change := func(by int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.store.silent = f.kind == faultStoreSilent || f.variant == 0
		switch f.kind {
		case faultStoreSlow:
			slower := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond}
			w.store.slow += time.Duration(by) * slower[f.variant]
		case faultStoreLoses:
			w.store.lose = max(0, by*(1+f.variant))
		default:
			w.store.away[host] += by
		}
	}
	change(1)
	time.Sleep(f.span)
	change(-1)
}
