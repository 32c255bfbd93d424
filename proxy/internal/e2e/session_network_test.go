package e2e

import (
	"slices"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// networkFault is a way in which the network between the program and the broker fails.
type networkFault struct {
	name  string
	spoil func(*testkit.FaultProxy)
	limit time.Duration // until the loss is noticed
}

// Whom nobody tells learns of it by silence: the program after its heartbeat and a little more, the broker at the second or third look, each one of its
// heartbeats after the one before (https://www.rabbitmq.com/docs/heartbeats), and then it ends the connection.
func networkFaultList() []networkFault {
	const silence, brokersSilence = heartbeat + heartbeat/5 + promptly, 3*shortHeartbeat + promptly
	return []networkFault{
		{"reset", func(p *testkit.FaultProxy) { p.Reset() }, promptly},
		{"reset told to the program alone", func(p *testkit.FaultProxy) { p.Reset(testkit.ToClient) }, promptly},
		{"reset told to the broker alone", func(p *testkit.FaultProxy) { p.Reset(testkit.ToServer) }, silence},
		{"end told to the program alone", func(p *testkit.FaultProxy) { p.Cut(testkit.ToClient) }, promptly},
		{"end told to the broker alone", func(p *testkit.FaultProxy) { p.Cut(testkit.ToServer) }, silence},
		{"silence towards the program", func(p *testkit.FaultProxy) { p.Stall(testkit.ToClient) }, silence},
		{"silence towards the broker", func(p *testkit.FaultProxy) { p.Stall(testkit.ToServer) }, brokersSilence},
		{"silence in both directions", func(p *testkit.FaultProxy) { p.Stall() }, silence},
	}
}

func networkFaults(t *testing.T, broker *testkit.Broker) {
	for _, fault := range networkFaultList() {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fault.happens(t, broker)
		})
	}
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		slowNetwork(t, broker)
	})
}

// Catches: a dead connection taken for a quiet one, work given up with its session, a success that was answered meanwhile forgotten, an ack of the old
// session that the network delivers late and that settles another message.
func (f networkFault) happens(t *testing.T, broker *testkit.Broker) {
	during, after := make(chan struct{}), make(chan struct{})
	orders := ids("order", 24)
	s := newStandOn(t, broker, shared.Redis, func(r testkit.Received) testkit.Action {
		if slices.Index(orders, r.Key)%2 == 0 {
			return testkit.Action{Wait: during}
		}
		return testkit.Action{Wait: after}
	})
	l := s.newLegs()
	r := s.start(l.env)
	r.waitConsuming()
	s.publish(orders...)
	s.underWay(4)
	since := time.Now()
	f.spoil(l.amqp)
	close(during) // answered, and perhaps acked, while nobody knows
	r.lost(since, f.limit, "connection lost", "why: network")
	r.waitMetric(`rabbitonce_session_ends_total{queue="{queue}",why="network"}`, 1)
	l.amqp.Unstall()
	r.waitConsuming()
	close(after)
	s.answered(orders...)
	s.settled()
	s.once(orders...)
	s.noLetters()
}

// Catches: a slow network taken for a dead one.
func slowNetwork(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	l := s.newLegs()
	l.amqp.Delay(300 * time.Millisecond)
	orders := ids("order", 60)
	s.publish(orders...)
	r := s.start(l.env)
	s.answered(orders...)
	s.outage(2 * shortHeartbeat) // heartbeats are slow too
	s.publish("later")
	s.answered("later")
	s.settled()
	s.once(append(orders, "later")...)
	r.undisturbed(s.queue)
}

// Catches: hosts tried one after another for ever because one of them accepts connections and says nothing, or a dead host that ends the search.
func TestSeveralHostsOfWhichSomeAreDead(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	l, silent := s.newLegs(), s.newLegs()
	silent.amqp.Stall()
	const refusing = "127.0.0.1:1"
	hosts := silent.amqp.Addr + "," + refusing + "," + l.amqp.Addr
	began := time.Now()
	r := s.start(l.env, env{"RABBITMQ_URL": s.broker.URLVia(hosts)})
	r.waitConsuming()
	const reach = 3 * time.Second // how long a host is waited for when there are others
	if took := time.Since(began); took > reach+promptly {
		t.Errorf("consuming after %v", took)
	}
	s.publish("a")
	s.answered("a")
	since := time.Now()
	l.amqp.Reset()
	r.lost(since, promptly)
	r.waitConsuming()
	if took := time.Since(since); took > reach+longestPause+promptly {
		t.Errorf("consuming again after %v", took)
	}
	s.publish("a", "b")
	s.answered("b")
	s.settled()
	s.once("a", "b")
}
