package fakebroker

import (
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Options are for New; the zero value is a broker that takes no time.
type Options struct {
	Version       string               // as clients are told; empty: 3.13.7
	DeliveryLimit int64                // of quorum queues that set none, as 4.0 has one of 20; 0: none
	CommitTime    func() time.Duration // how long a message takes to be safe, and so confirmed and ready; nil: no time
}

// Broker is one node with the vhost / and the user guest. All methods are safe for concurrent use.
type Broker struct {
	options Options
	work    sync.WaitGroup // goroutines of connections

	mu          sync.Mutex
	queues      map[string]*queue
	connections []*connection
	commits     map[*commit]struct{}
	down        bool
	alarm       bool
	freed       chan struct{} // closed when no alarm is on
	refusals    []string
}

// New returns a broker without queues.
func New(options Options) *Broker {
	if options.Version == "" {
		options.Version = "3.13.7"
	}
	b := &Broker{
		options: options, queues: map[string]*queue{}, commits: map[*commit]struct{}{},
		freed: make(chan struct{}),
	}
	close(b.freed)
	return b
}

// Serve speaks with one client until the connection ends.
func (b *Broker) Serve(conn net.Conn) {
	c, ok := b.admit(conn)
	if !ok {
		_ = conn.Close()
		return
	}
	c.run()
}

// ServeListener serves all that the listener takes, until it is closed.
func (b *Broker) ServeListener(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go b.Serve(conn)
	}
}

// admit counts the connection as one to wait for, unless the broker is down.
func (b *Broker) admit(conn net.Conn) (*connection, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, false
	}
	c := newConnection(b, conn)
	b.connections = append(b.connections, c)
	b.work.Add(1)
	return c, true
}

// Close ends everything and waits for it.
func (b *Broker) Close() {
	b.Kill(Damage{})
	b.mu.Lock()
	for _, q := range b.queues {
		q.disarm()
	}
	b.mu.Unlock()
	b.work.Wait()
}

// Declare makes sure that a durable queue is there, as an operator would.
func (b *Broker) Declare(name string, arguments amqp.Table) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.declareLocked(declaration{name: name, durable: true, arguments: arguments})
	return err
}

// Publish puts a persistent message into a queue; confirmed is called once it is safe. False means that the broker is down.
func (b *Broker) Publish(queue, id string, body []byte, confirmed func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return false
	}
	p := properties{messageID: id, deliveryMode: 2, flags: flagMessageID | flagDeliveryMode}
	b.commitLocked(func() {
		if q := b.queues[queue]; q != nil {
			q.push(&message{key: queue, properties: p, body: body})
		}
	}, confirmed)
	return true
}

// Delete deletes a queue with its messages; its consumers are cancelled.
func (b *Broker) Delete(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[name]; q != nil {
		q.delete()
	}
}

// Queues lists the queues that there are.
func (b *Broker) Queues() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.queues))
}

// Count tells how many messages of a queue are ready, and how many are with consumers.
func (b *Broker) Count(name string) (ready, unacknowledged int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[name]; q != nil {
		return q.length(), q.out
	}
	return 0, 0
}

// Refusals are the errors with which channels and connections were ended, but for queues that are missing: a client that is
// right has none.
func (b *Broker) Refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.refusals)
}

// refuse notes the end of a channel or a connection.
func (b *Broker) refuse(r *reply) {
	if r.code != codeForced && r.code != codeNotFound {
		b.refusals = append(b.refusals, r.Error())
	}
}

// Uncommitted tells how many messages were published and are not safe yet.
func (b *Broker) Uncommitted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.commits)
}

// Message is one that lies in a queue.
type Message struct {
	ID      string
	Headers amqp.Table
	Body    []byte
}

// Messages returns what is ready in a queue, from its head.
func (b *Broker) Messages(name string) []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		return nil
	}
	var all []Message
	for _, m := range slices.Concat(q.returned, q.ready, q.stuck) {
		all = append(all, Message{ID: m.properties.messageID, Headers: maps.Clone(m.properties.headers), Body: m.body})
	}
	return all
}

// CancelConsumers cancels the consumers of a queue, as when its leader moves.
func (b *Broker) CancelConsumers(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[name]; q != nil {
		q.cancelConsumers()
	}
}

// SetAlarm begins or ends a memory alarm: who publishes is told so and not read from
// (https://www.rabbitmq.com/docs/connection-blocked).
func (b *Broker) SetAlarm(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if on == b.alarm {
		return
	}
	b.alarm = on
	if on {
		b.freed = make(chan struct{})
		return
	}
	close(b.freed)
	for _, c := range b.connections {
		c.unblock()
	}
}

// Damage is what a node that is killed loses: it asks for each message. Nil loses none.
type Damage struct {
	Uncommitted  func() bool // one that was published and is not confirmed
	Acknowledged func() bool // an acknowledgement of the last moments: the message is there again
}

// lastMoments is how old an acknowledgement may be that a killed node forgets.
const lastMoments = 100 * time.Millisecond

// Kill ends the node at once. What was confirmed is kept.
func (b *Broker) Kill(damage Damage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = true
	for c := range b.commits {
		if damage.Uncommitted == nil || !damage.Uncommitted() {
			c.finish(false)
		}
		c.forget()
	}
	for _, c := range b.connections {
		c.cut()
	}
	for _, q := range b.queues {
		q.recover(damage.Acknowledged)
	}
}

// Stop ends the node in good order: clients are told, and nothing is lost.
func (b *Broker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = true
	for c := range b.commits {
		c.finish(true)
		c.forget()
	}
	for _, c := range b.connections {
		c.fail(hard(codeForced, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"), method{})
		c.hangUp()
	}
	for _, q := range b.queues {
		q.recover(nil)
	}
}

// Start lets clients in again.
func (b *Broker) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = false
}

// checkName refuses what no client may declare.
func checkName(name string) error {
	if strings.HasPrefix(name, "amq.") {
		return soft(codeAccessRefused, "ACCESS_REFUSED - queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	return nil
}

// commit is a message that was published and is not yet safe.
type commit struct {
	broker *Broker
	timer  *time.Timer
	keep   func()
	answer func()
}

// commitLocked runs keep and answer together, once the message is safe.
func (b *Broker) commitLocked(keep, answer func()) {
	var after time.Duration
	if b.options.CommitTime != nil {
		after = b.options.CommitTime()
	}
	if after <= 0 {
		keep()
		answer()
		return
	}
	c := &commit{broker: b, keep: keep, answer: answer}
	b.commits[c] = struct{}{}
	c.timer = time.AfterFunc(after, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.commits[c]; ok {
			c.forget()
			c.finish(true)
		}
	})
}

func (c *commit) finish(answered bool) {
	c.keep()
	if answered {
		c.answer()
	}
}

func (c *commit) forget() {
	c.timer.Stop()
	delete(c.broker.commits, c)
}
