package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// kind is one way to do harm. hit does it, waits, and takes it back. Those of a process or of its network
// get a replica.
type kind struct {
	name  string
	part  check.Part
	fatal bool // it ends the process
	first bool // of the first replica: the clock of no other can jump
	hit   func(s *stage, r *replica, draw *rand.Rand) error
}

// lane is a sequence of faults, one at a time, of some kinds. Lanes run side by side.
type lane struct {
	name  string
	kinds []kind
	each  bool          // of one replica; else of all
	pause time.Duration // at most, between two faults
}

func lanes() []lane {
	return []lane{
		{name: "process", kinds: processKinds(), each: true, pause: 1500 * time.Millisecond},
		{name: "network", kinds: networkKinds(), each: true, pause: time.Second},
		{name: "servers", kinds: serverKinds(), pause: 8 * time.Second},
		{name: "service", kinds: serviceKinds(), pause: 4 * time.Second},
	}
}

// between draws a duration.
func between(draw *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(draw.Int64N(int64(most-least)))
}

func processKinds() []kind {
	const shortly, longly = 50 * time.Millisecond, time.Second
	return []kind{
		{name: "kill -9", part: check.PartProcess, fatal: true, hit: func(_ *stage, r *replica, draw *rand.Rand) error { return r.kill(between(draw, 0, longly)) }},
		{name: "SIGTERM", part: check.PartProcess, fatal: true, hit: func(_ *stage, r *replica, draw *rand.Rand) error { return r.terminate(between(draw, 0, longly)) }},
		{name: "stopped, shorter than the lease", part: check.PartProcess, hit: func(_ *stage, r *replica, draw *rand.Rand) error {
			return r.stop(between(draw, shortly, lease/3))
		}},
		{name: "stopped, longer than the lease", part: check.PartProcess, hit: func(_ *stage, r *replica, draw *rand.Rand) error {
			return r.stop(between(draw, lease+shortly, 2*lease))
		}},
		{name: "clock jumped", part: check.PartProcess, first: true, hit: clockJumped},
	}
}

// networkKinds are five for each of a process's three ways.
func networkKinds() []kind {
	ways := []struct {
		part check.Part
		way  func(*replica) *testkit.FaultProxy
	}{
		{check.PartBroker, func(r *replica) *testkit.FaultProxy { return r.broker }},
		{check.PartStore, func(r *replica) *testkit.FaultProxy { return r.store }},
		{check.PartService, func(r *replica) *testkit.FaultProxy { return r.service }},
	}
	var kinds []kind
	for _, w := range ways {
		add := func(name string, hit func(p *testkit.FaultProxy, draw *rand.Rand) error) {
			kinds = append(kinds, kind{name: fmt.Sprintf("%s network %s", w.part, name), part: w.part, hit: func(_ *stage, r *replica, draw *rand.Rand) error {
				return hit(w.way(r), draw)
			}})
		}
		add("cut", func(p *testkit.FaultProxy, _ *rand.Rand) error { p.Cut(); return nil })
		add("reset", func(p *testkit.FaultProxy, _ *rand.Rand) error { p.Reset(); return nil })
		add("half open", func(p *testkit.FaultProxy, draw *rand.Rand) error {
			p.Reset(testkit.Direction(draw.IntN(2)))
			return nil
		})
		add("stalled", stalled)
		add("replies lost", repliesLost)
	}
	return kinds
}

// stalled stops one direction or both, for a moment or beyond the lease.
func stalled(p *testkit.FaultProxy, draw *rand.Rand) error {
	directions := [][]testkit.Direction{nil, {testkit.ToServer}, {testkit.ToClient}}[draw.IntN(3)]
	d := between(draw, 100*time.Millisecond, lease/2)
	if draw.IntN(4) == 0 {
		d = between(draw, lease, 2*lease)
	}
	p.Stall(directions...)
	time.Sleep(d)
	p.Unstall(directions...)
	return nil
}

// repliesLost swallows what the server says next, three times, with the connection on which it says that.
func repliesLost(p *testkit.FaultProxy, draw *rand.Rand) error {
	for range 3 {
		b := p.Barrier(testkit.ToClient, func(testkit.Unit) bool { return true })
		select {
		case <-b.Reached():
			b.Drop()
		case <-time.After(time.Second):
			b.Release()
		}
		time.Sleep(between(draw, 0, 200*time.Millisecond))
	}
	return nil
}

// within bounds what is asked of a server.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*time.Minute)
}

// ctl has an operator tell the broker something.
func (s *stage) ctl(args ...string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := s.servers.Broker.Ctl(ctx, args...)
	return err
}

// alarm has the broker raise a memory alarm, which blocks who publishes, and returns after d.
func (s *stage) alarm(d time.Duration) error {
	err := s.ctl("set_vm_memory_high_watermark", "0.0000001")
	time.Sleep(d)
	return err
}

func (s *stage) noAlarm() error { return s.ctl("set_vm_memory_high_watermark", "0.6") }

func serverKinds() []kind {
	return []kind{
		{name: "broker restarted", part: check.PartBroker, hit: func(s *stage, _ *replica, _ *rand.Rand) error {
			ctx, cancel := within()
			defer cancel()
			return s.servers.Broker.Restart(ctx)
		}},
		{name: "broker kill -9", part: check.PartBroker, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			ctx, cancel := within()
			defer cancel()
			err := s.servers.Broker.Kill()
			time.Sleep(between(draw, 0, time.Second))
			return errors.Join(err, s.servers.Broker.Start(ctx))
		}},
		{name: "connections closed by an operator", part: check.PartBroker, hit: func(s *stage, _ *replica, _ *rand.Rand) error {
			return s.ctl("close_all_connections", "fault")
		}},
		{name: "memory alarm", part: check.PartBroker, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			return errors.Join(s.alarm(between(draw, time.Second, 2*lease)), s.noAlarm())
		}},
		{name: "store restarted", part: check.PartStore, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			ctx, cancel := within()
			defer cancel()
			err := s.servers.Redis.Stop(ctx)
			time.Sleep(between(draw, 0, lease))
			return errors.Join(err, s.servers.Redis.Start(ctx))
		}},
		{name: "store kill -9", part: check.PartStore, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			ctx, cancel := within()
			defer cancel()
			err := s.servers.Redis.Kill()
			time.Sleep(between(draw, 0, time.Second))
			return errors.Join(err, s.servers.Redis.Start(ctx))
		}},
		{name: "store stopped", part: check.PartStore, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			err := s.servers.Redis.Pause()
			time.Sleep(between(draw, 200*time.Millisecond, 2*lease))
			return errors.Join(err, s.servers.Redis.Resume())
		}},
	}
}

func serviceKinds() []kind {
	return []kind{
		{name: "service restarted", part: check.PartService, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			s.service.Stop()
			time.Sleep(between(draw, 0, 2*hold))
			return s.service.Start()
		}},
		{name: "service hangs", part: check.PartService, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			s.service.hang(between(draw, timeout/4, 2*timeout))
			return nil
		}},
		{name: "service slow", part: check.PartService, hit: func(s *stage, _ *replica, draw *rand.Rand) error {
			s.service.slow(between(draw, timeout/4, timeout), between(draw, time.Second, 2*timeout))
			return nil
		}},
	}
}
