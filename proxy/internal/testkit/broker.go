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
const brokerStart = 3 * time.Minute

// BrokerOptions are for StartBroker; the zero value is a plain node without plugins.
type BrokerOptions struct {
	Root    string                           // a folder made by .ci/servers; empty: what RABBITONCE_TEST_BROKER_ROOT says, or this machine's RabbitMQ
	Config  []string                         // more lines for rabbitmq.conf
	Args    []string                         // more arguments of its Erlang machine, such as -rabbit NAME VALUE
	Plugins []string                         // enabled plugins, such as rabbitmq_management
	TLS     bool                             // listens for TLS too; Config names the certificates (ssl_options)
	Logf    func(format string, args ...any) // progress; nil is silent

	cookie string // what the nodes of a cluster know each other by; empty: the node makes one up
}

// Broker is a private RabbitMQ node. Its data, address and ports stay the same over Stop, Kill and Start.
// Its methods are not for concurrent use.
type Broker struct {
	URL     string // amqp://guest:guest@127.0.0.1:PORT/
	Addr    string // 127.0.0.1:PORT, for a FaultProxy
	TLSAddr string // 127.0.0.1:PORT for TLS, with BrokerOptions.TLS
	LogPath string // what the node writes, over all its starts

	dir      string
	programs brokerPrograms
	node     string
	env      []string
	ports    []port      // released by Close
	mapper   *portMapper // its own; nil in a cluster, which has one for all its nodes
	process  *process    // nil while stopped
	logf     func(format string, args ...any)
}

// StartBroker returns a node that accepts connections.
func StartBroker(ctx context.Context, options BrokerOptions) (*Broker, error) {
	programs, err := findBrokerPrograms(options)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	mapper, err := startPortMapper(ctx, programs)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	b := newBroker(programs, options)
	b.mapper = mapper
	if err := b.reserve(); err != nil {
		return nil, errors.Join(fmt.Errorf("start broker: %w", err), b.Close())
	}
	if err := b.prepare(mapper.port, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start broker: %w", err), b.Close())
	}
	if err := b.Start(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func newBroker(programs brokerPrograms, options BrokerOptions) *Broker {
	b := &Broker{programs: programs, logf: options.Logf}
	if b.logf == nil {
		b.logf = func(string, ...any) {}
	}
	return b
}

// reserve takes ports, for clients and for other nodes, and with them a name.
func (b *Broker) reserve() error {
	for range 2 {
		p, err := reservePort()
		if err != nil {
			return err
		}
		b.ports = append(b.ports, p)
	}
	b.Addr = b.ports[0].address()
	b.URL = b.URLVia(b.Addr)
	b.node = fmt.Sprintf("rabbitonce-%d@localhost", b.ports[0].number)
	return nil
}

// prepare writes the folder.
func (b *Broker) prepare(mapper port, options BrokerOptions) error {
	var err error
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
	if err := writeBrokerFiles(b.dir, b.ports[0].number, options); err != nil {
		return err
	}
	if options.cookie != "" {
		if err := os.WriteFile(filepath.Join(b.dir, ".erlang.cookie"), []byte(options.cookie), 0o400); err != nil {
			return err
		}
	}
	b.env = brokerEnv(b.dir, b.node, b.ports[1].number, mapper.number, options.Args)
	return b.programs.account.own(b.dir)
}

// Start runs the node again after Stop or Kill, and returns when it accepts AMQP connections.
func (b *Broker) Start(ctx context.Context) error {
	if b.Running() {
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
	path, args := b.programs.command(b.programs.server)
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

// Running tells whether the node has a process.
func (b *Broker) Running() bool { return b.process != nil && b.process.running() }

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
	return b.runTool(ctx, b.programs.ctl, args...)
}

// Queues runs rabbitmq-queues against this node, such as for the members of a quorum queue, and returns what it printed on
// stdout.
func (b *Broker) Queues(ctx context.Context, args ...string) (string, error) {
	return b.runTool(ctx, b.programs.queues, args...)
}

func (b *Broker) runTool(ctx context.Context, program string, args ...string) (string, error) {
	path, all := b.programs.command(program, append([]string{"--quiet", "-n", b.node}, args...)...)
	tool := exec.CommandContext(ctx, path, all...)
	tool.Env, tool.Dir = b.env, b.dir
	var complaint strings.Builder
	tool.Stderr = &complaint
	out, err := tool.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return string(out), nil
}

// Version is the node's version, in its own words.
func (b *Broker) Version() (string, error) {
	connection, err := amqp.DialConfig(b.URL, amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return "", fmt.Errorf("ask broker for its version: %w", err)
	}
	product, version := connection.Properties["product"], connection.Properties["version"]
	return fmt.Sprintf("%v %v", product, version), connection.Close()
}

// Node is the node's name, for what rabbitmqctl wants to be told of other nodes.
func (b *Broker) Node() string { return b.node }

// QueueCounts returns how many messages of a queue wait and how many are with consumers. The counts of a quorum queue
// are as old as its tick, which this node takes every 500 ms.
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
	if b.mapper != nil {
		err = errors.Join(err, b.mapper.close())
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
