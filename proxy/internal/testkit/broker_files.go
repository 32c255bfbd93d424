package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// brokerPrograms are the programs of one RabbitMQ installation, and how to run them.
type brokerPrograms struct {
	root                      root
	account                   account
	server, ctl, queues, epmd string // paths in the root
}

// findBrokerPrograms prefers RabbitMQ's own scripts to those on PATH: Debian's are wrappers that change user and open a
// session of their own, out of reach of a signal to the group.
func findBrokerPrograms(options BrokerOptions) (brokerPrograms, error) {
	where, err := newRoot(options.Root, brokerRootVariable)
	if err != nil {
		return brokerPrograms{}, fmt.Errorf("find RabbitMQ: %w", err)
	}
	p := brokerPrograms{root: where}
	var problems []error
	find := func(into *string, name string, folders ...string) {
		found, err := where.lookUp(name, folders...)
		*into, problems = found, append(problems, err)
	}
	find(&p.server, "rabbitmq-server", "/usr/lib/rabbitmq/bin")
	find(&p.ctl, "rabbitmqctl", "/usr/lib/rabbitmq/bin")
	find(&p.queues, "rabbitmq-queues", "/usr/lib/rabbitmq/bin")
	find(&p.epmd, "epmd")
	if err := errors.Join(problems...); err != nil {
		return brokerPrograms{}, fmt.Errorf("find RabbitMQ (install it with .ci/install): %w", err)
	}
	p.account, err = brokerAccount(where)
	return p, err
}

// command returns a command line that runs a program in the root and as the account.
func (p brokerPrograms) command(program string, args ...string) (string, []string) {
	path, args := p.account.wrap(program, args...)
	return p.root.wrap(path, args...)
}

// writeBrokerFiles fills the node's folder with all the files that its environment names.
func writeBrokerFiles(dir string, amqpPort int, options BrokerOptions) error {
	conf := append([]string{
		fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d", amqpPort),
		"distribution.listener.interface = 127.0.0.1",
		"disk_free_limit.absolute = 10MB",
		"log.console.level = info",
	}, options.Config...)
	files := map[string]string{
		"rabbitmq.conf":     strings.Join(conf, "\n") + "\n",
		"advanced.config":   "[{rabbit, [{quorum_tick_interval, 500}]}].\n",
		"rabbitmq-env.conf": "",
		"enabled_plugins":   "[" + strings.Join(options.Plugins, ",") + "].\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// brokerEnv is the whole environment of the node and of rabbitmqctl. Nothing of the machine's own broker, if it has
// one, shows through.
func brokerEnv(dir, node string, distributionPort, mapperPort int, args []string) []string {
	in := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + dir,            // the Erlang cookie is made here
		"TMPDIR=" + os.TempDir(), // a root shows it under the same path
		"LANG=C.UTF-8",
		"RABBITMQ_NODENAME=" + node,
		"RABBITMQ_CONF_ENV_FILE=" + in("rabbitmq-env.conf"),
		"RABBITMQ_CONFIG_FILE=" + in("rabbitmq"),
		"RABBITMQ_CONFIG_FILES=" + in("conf.d"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + in("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + in("data"),
		"RABBITMQ_LOG_BASE=" + in("log"),
		"RABBITMQ_LOGS=-",
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", distributionPort),
		fmt.Sprintf("ERL_EPMD_PORT=%d", mapperPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		// Two schedulers and no busy waiting: several nodes share a small machine.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +SDio 4 +A 4 -start_epmd false " + strings.Join(args, " "),
		"RABBITMQ_CTL_ERL_ARGS=+S 1:1 +A 1",
		"ERL_CRASH_DUMP_SECONDS=0",
		// The start script then becomes the Erlang machine instead of staying as its parent.
		"detached=true",
	}
}
