package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// brokerStart bounds the start of a node, on a busy machine too.
const brokerStart = 90 * time.Second

// BrokerOptions are for StartBroker; the zero value is a plain node without plugins.
type BrokerOptions struct {
	Config  []string                         // more lines for rabbitmq.conf
	Plugins []string                         // enabled plugins, such as rabbitmq_management
	TLS     bool                             // listens for TLS too; Config names the certificates (ssl_options)
	Logf    func(format string, args ...any) // progress; nil is silent
}

// Broker is a private RabbitMQ node. Its data, address and ports stay the same over Stop, Kill and Start.
// Its methods are not for concurrent use.
type Broker struct {
	URL     string // amqp://guest:guest@127.0.0.1:PORT/
	Addr    string // 127.0.0.1:PORT, for a FaultProxy
	TLSAddr string // 127.0.0.1:PORT for TLS, with BrokerOptions.TLS
	LogPath string // what the node writes, over all its starts

	dir      string
	account  account
	binaries brokerBinaries
	node     string
	env      []string
	ports    []port // released by Close
	portMap  *process
	process  *process // nil while stopped
	logf     func(format string, args ...any)
}

// StartBroker returns a node that accepts connections.
func StartBroker(ctx context.Context, options BrokerOptions) (*Broker, error) {
	b := &Broker{logf: options.Logf}
	if b.logf == nil {
		b.logf = func(string, ...any) {}
	}
	if err := b.prepare(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start broker: %w", err), b.Close())
	}
	if err := b.Start(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// prepare finds the programs, reserves ports, writes the folder and starts the port mapper.
func (b *Broker) prepare(ctx context.Context, options BrokerOptions) error {
	var err error
	if b.binaries, err = findBrokerBinaries(); err != nil {
		return err
	}
	if b.account, err = brokerAccount(); err != nil {
		return err
	}
	for range 3 {
		p, err := reservePort()
		if err != nil {
			return err
		}
		b.ports = append(b.ports, p)
	}
	amqpPort, distribution, mapper := b.ports[0], b.ports[1], b.ports[2]
	b.Addr = amqpPort.address()
	b.URL = b.URLVia(b.Addr)
	b.node = fmt.Sprintf("rabbitonce-%d@localhost", amqpPort.number)
	if b.dir, err = os.MkdirTemp("", "rabbitonce-broker-"); err != nil {
		return err
	}
	b.LogPath = filepath.Join(b.dir, "broker.log")
	if options.TLS {
		secured, err := reservePort()
		if err != nil {
			return err
		}
		b.ports, b.TLSAddr = append(b.ports, secured), secured.address()
		options.Config = append(slices.Clone(options.Config), "listeners.ssl.1 = "+b.TLSAddr)
	}
	if err := writeBrokerFiles(b.dir, amqpPort.number, options); err != nil {
		return err
	}
	if err := b.account.own(b.dir); err != nil {
		return err
	}
	b.env = brokerEnv(b.dir, b.node, distribution.number, mapper.number)
	return b.startPortMapper(ctx, mapper)
}

// startPortMapper runs epmd in the foreground and in a guarded group. Without it the node would start one as a daemon
// that outlives it.
func (b *Broker) startPortMapper(ctx context.Context, p port) error {
	log, err := openLog(b.LogPath)
	if err != nil {
		return err
	}
	defer log.Close()
	b.portMap, err = command{
		name: "epmd", path: b.binaries.epmd, env: b.env, dir: b.dir, out: log,
		args: []string{"-address", "127.0.0.1", "-port", strconv.Itoa(p.number)},
	}.start()
	if err != nil {
		return err
	}
	return b.portMap.await(ctx, func() error { return dialable(p.address()) })
}

// Start runs the node again after Stop or Kill, and returns when it accepts AMQP connections.
func (b *Broker) Start(ctx context.Context) error {
	if b.process != nil && b.process.running() {
		return errors.New("start broker: it is running")
	}
	ctx, cancel := context.WithTimeout(ctx, brokerStart)
	defer cancel()
	log, err := openLog(b.LogPath)
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	defer log.Close()
	b.logf("starting RabbitMQ on %s", b.Addr)
	path, args := b.account.wrap(b.binaries.server)
	b.process, err = command{name: "rabbitmq-server", path: path, args: args, env: b.env, dir: b.dir, out: log}.start()
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	if err := b.process.await(ctx, b.ready); err != nil {
		return withTail(errors.Join(fmt.Errorf("start broker: %w", err), b.process.kill()), b.LogPath)
	}
	b.logf("RabbitMQ is ready on %s", b.Addr)
	return nil
}

// ready opens a connection as a client would: the listener comes up before the node can serve.
func (b *Broker) ready() error {
	if err := dialable(b.Addr); err != nil {
		return err
	}
	connection, err := amqp.DialConfig(b.URL, amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return err
	}
	return connection.Close()
}

// Stop ends the node in good order.
func (b *Broker) Stop(ctx context.Context) error {
	if b.process == nil {
		return nil
	}
	return b.process.stop(ctx)
}

// Kill ends the node with SIGKILL, as a power cut would.
func (b *Broker) Kill() error {
	if b.process == nil {
		return nil
	}
	return b.process.kill()
}

// Restart is Stop, then Start.
func (b *Broker) Restart(ctx context.Context) error {
	if err := b.Stop(ctx); err != nil {
		return err
	}
	return b.Start(ctx)
}

// Pause stops the node's processes without ending them: connections stay open and nobody answers.
func (b *Broker) Pause() error { return b.process.signalAll(syscall.SIGSTOP) }

// Resume undoes Pause.
func (b *Broker) Resume() error { return b.process.signalAll(syscall.SIGCONT) }

// Ctl runs rabbitmqctl against this node and returns what it printed on stdout.
func (b *Broker) Ctl(ctx context.Context, args ...string) (string, error) {
	path, all := b.account.wrap(b.binaries.ctl, append([]string{"--quiet", "-n", b.node}, args...)...)
	ctl := exec.CommandContext(ctx, path, all...)
	ctl.Env, ctl.Dir = b.env, b.dir
	var complaint strings.Builder
	ctl.Stderr = &complaint
	out, err := ctl.Output()
	if err != nil {
		return string(out), fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return string(out), nil
}

// QueueCounts returns how many messages of a queue wait and how many are with consumers. The counts of a quorum queue
// are as old as its tick, which this node takes every 200 ms.
func (b *Broker) QueueCounts(ctx context.Context, queue string) (ready, unacknowledged int, err error) {
	out, err := b.Ctl(ctx, "list_queues", "--no-table-headers", "name", "messages_ready", "messages_unacknowledged")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || fields[0] != queue {
			continue
		}
		ready, readyErr := strconv.Atoi(fields[1])
		unacknowledged, err := strconv.Atoi(fields[2])
		return ready, unacknowledged, errors.Join(readyErr, err)
	}
	return 0, 0, fmt.Errorf("count messages: no queue %q", queue)
}

// URLVia is the broker's URL with another address, such as a FaultProxy's.
func (b *Broker) URLVia(addr string) string { return "amqp://guest:guest@" + addr + "/" }

// Close kills the node and removes all that belongs to it.
func (b *Broker) Close() error {
	err := b.Kill()
	if b.portMap != nil {
		err = errors.Join(err, b.portMap.kill())
	}
	for _, p := range b.ports {
		p.release()
	}
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

func dialable(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
