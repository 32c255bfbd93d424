package fakebroker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// connection is one client. Its fields belong to the broker's lock, but for those of the reader.
type connection struct {
	broker *Broker
	conn   net.Conn
	wake   chan struct{} // something is to be written
	ended  chan struct{} // closed when the socket is to be closed

	out      []byte
	sent     bool // since the last heartbeat
	hungUp   bool // the socket is closed once out is written
	channels map[uint16]*channel
	blocked  bool // told so, and not read from

	stage     stage // the reader's from here
	heartbeat time.Duration
	frameSize int
}

// stage is how far the handshake has come.
type stage uint8

const (
	awaitsHeader stage = iota
	awaitsStartOK
	awaitsTuneOK
	awaitsOpen
	isOpen
	isClosing // close was sent: only close-ok counts
	isOver
)

const (
	defaultHeartbeat = 60 // seconds
	channelMax       = 2047
)

func newConnection(b *Broker, conn net.Conn) *connection {
	return &connection{
		broker: b, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{}), channels: map[uint16]*channel{},
		frameSize: frameMax,
	}
}

func (c *connection) run() {
	written := make(chan struct{})
	go func() { defer close(written); c.write() }()
	c.read()
	c.broker.mu.Lock()
	c.broker.connections = slices.DeleteFunc(c.broker.connections, func(other *connection) bool { return other == c })
	c.end()
	c.hangUp()
	c.broker.mu.Unlock()
	<-written
	c.broker.work.Done()
}

// read handles frames until the connection ends.
func (c *connection) read() {
	r := bufio.NewReader(c.conn)
	var header [len(protocolHeader)]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return
	}
	if string(header[:]) != protocolHeader {
		_, _ = c.conn.Write([]byte(protocolHeader))
		return
	}
	c.locked(c.start)
	for {
		if c.heartbeat > 0 {
			_ = c.conn.SetReadDeadline(time.Now().Add(2 * c.heartbeat))
		}
		f, err := readFrame(r)
		if err != nil {
			return
		}
		c.locked(func() { c.take(f) })
		if c.isBlocked() {
			_ = c.conn.SetReadDeadline(time.Time{})
			c.awaitFree()
		}
	}
}

func (c *connection) locked(f func()) {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	f()
}

func (c *connection) isBlocked() bool {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	return c.blocked
}

// awaitFree waits while an alarm is on.
func (c *connection) awaitFree() {
	c.broker.mu.Lock()
	freed := c.broker.freed
	c.broker.mu.Unlock()
	select {
	case <-freed:
	case <-c.ended:
	}
}

// write sends what there is until the socket is to be closed.
func (c *connection) write() {
	defer func() { _ = c.conn.Close() }()
	var beat <-chan time.Time
	for {
		select {
		case <-c.wake:
		case <-beat:
			c.locked(c.beat)
		}
		c.broker.mu.Lock()
		out, last, interval := c.out, c.hungUp, c.heartbeat
		c.out = nil
		c.broker.mu.Unlock()
		if interval > 0 && beat == nil {
			ticker := time.NewTicker(interval / 2)
			defer ticker.Stop()
			beat = ticker.C
		}
		if len(out) > 0 {
			if _, err := c.conn.Write(out); err != nil {
				return
			}
		}
		if last {
			return
		}
	}
}

// beat sends a heartbeat after half an interval of silence.
func (c *connection) beat() {
	if !c.sent {
		c.sendFrame(frameHeartbeat, 0, nil)
	}
	c.sent = false
}

func (c *connection) sendFrame(kind byte, channel uint16, payload []byte) {
	e := encoder{data: c.out}
	e.frame(kind, channel, payload)
	c.out = e.data
	c.sent = true
	c.poke()
}

func (c *connection) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *connection) send(channel uint16, m method, fill func(e *encoder)) {
	var e encoder
	e.short(m.class)
	e.short(m.number)
	if fill != nil {
		fill(&e)
	}
	c.sendFrame(frameMethod, channel, e.data)
}

// hangUp closes the socket once all is written.
func (c *connection) hangUp() {
	if !c.hungUp {
		c.hungUp = true
		close(c.ended)
	}
	c.poke()
}

// cut closes the socket now.
func (c *connection) cut() {
	c.out = nil
	c.end()
	c.hangUp()
	_ = c.conn.Close()
}

// end gives back what the connection's channels hold.
func (c *connection) end() {
	c.stage = isOver
	for _, ch := range c.channels {
		ch.end()
	}
}

// fail ends a channel or the connection, as the error says.
func (c *connection) fail(err error, at method) {
	r := &reply{code: codeFrameError, text: "FRAME_ERROR - " + err.Error(), hard: true}
	_ = errors.As(err, &r)
	c.broker.refuse(r)
	c.send(0, connectionClose, func(e *encoder) { r.encode(e, at) })
	c.end()
	c.stage = isClosing
}

func (r *reply) encode(e *encoder, at method) {
	e.short(uint16(r.code))
	e.shortstr(r.text)
	e.short(at.class)
	e.short(at.number)
}

func (c *connection) take(f frame) {
	switch {
	case c.stage == isOver, f.kind == frameHeartbeat:
	case c.stage == isClosing && (f.channel != 0 || f.kind != frameMethod): // it was under way
	case f.channel != 0 && c.stage == isOpen:
		c.takeOnChannel(f)
	case f.kind != frameMethod:
		c.fail(hard(codeCommandInvalid, "COMMAND_INVALID - a frame of type %d", f.kind), method{})
	default:
		d := &decoder{data: f.payload}
		m := method{d.short(), d.short()}
		err := c.handle(m, d)
		if err == nil {
			err = d.err
		}
		if err != nil {
			c.fail(err, m)
		}
	}
}

func (c *connection) start() {
	c.stage = awaitsStartOK
	c.send(0, connectionStart, func(e *encoder) {
		e.octet(0)
		e.octet(9)
		e.table(amqp.Table{
			"product": "RabbitMQ", "version": c.broker.options.Version, "platform": "memory",
			"capabilities": amqp.Table{
				"publisher_confirms": true, "basic.nack": true, "consumer_cancel_notify": true, "connection.blocked": true,
				"authentication_failure_close": true, "per_consumer_qos": true, "exchange_exchange_bindings": true,
			},
		})
		e.longstr("PLAIN AMQPLAIN")
		e.longstr("en_US")
	})
}

// handle is for the connection's own methods.
func (c *connection) handle(m method, d *decoder) error {
	switch {
	case m == connectionClose:
		c.end()
		c.send(0, connectionCloseOK, nil)
		c.hangUp()
	case m == connectionCloseOK && c.stage == isClosing:
		c.end()
		c.hangUp()
	case c.stage == isClosing:
	case m == connectionStartOK && c.stage == awaitsStartOK:
		return c.login(d)
	case m == connectionTuneOK && c.stage == awaitsTuneOK:
		d.short() // channels
		c.frameSize = int(d.long())
		if c.frameSize == 0 || c.frameSize > frameMax || c.frameSize < frameMinimum {
			c.frameSize = frameMax
		}
		c.heartbeat = time.Duration(d.short()) * time.Second
		c.stage = awaitsOpen
	case m == connectionOpen && c.stage == awaitsOpen:
		if vhost := d.shortstr(); vhost != "/" {
			return hard(codeNotAllowed, "NOT_ALLOWED - vhost %s not found", vhost)
		}
		c.stage = isOpen
		c.send(0, connectionOpenOK, func(e *encoder) { e.shortstr("") })
	default:
		return hard(codeCommandInvalid, "COMMAND_INVALID - unexpected method %d.%d", m.class, m.number)
	}
	return nil
}

// login takes guest with the password guest.
func (c *connection) login(d *decoder) error {
	d.table()
	mechanism, response := d.shortstr(), d.longstr()
	parts := strings.Split(response, "\x00")
	if mechanism != "PLAIN" || len(parts) != 3 || parts[1] != user || parts[2] != user {
		return hard(codeAccessRefused, "ACCESS_REFUSED - Login was refused using authentication mechanism %s. For details see the broker logfile.", mechanism)
	}
	c.stage = awaitsTuneOK
	c.send(0, connectionTune, func(e *encoder) {
		e.short(channelMax)
		e.long(frameMax)
		e.short(defaultHeartbeat)
	})
	return nil
}

// user is the one that there is, and its password.
const user = "guest"

// block tells a connection that publishes during an alarm.
func (c *connection) block() {
	if c.broker.alarm && !c.blocked {
		c.blocked = true
		c.send(0, connectionBlocked, func(e *encoder) { e.shortstr("low on memory") })
	}
}

func (c *connection) unblock() {
	if c.blocked {
		c.blocked = false
		c.send(0, connectionUnblocked, nil)
	}
}
