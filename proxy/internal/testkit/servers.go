package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Servers are what all tests of a process share: the program under test, and what it needs. TestMain starts them.
type Servers struct {
	Binary  *Binary
	Broker  *Broker        // nil where there is a cluster
	Cluster *BrokerCluster // nil where there is a broker
	Redis   *Redis
}

// ServersOptions are for Servers.Around.
type ServersOptions struct {
	Race   bool         // the program has the race detector
	Nodes  int          // of a cluster; 0 is a broker by itself
	After  func() error // looks at what the tests have left; nil is nothing
	Broker BrokerOptions
	Redis  RedisOptions
}

// serversStart bounds the start of all of them.
const serversStart = 4 * time.Minute

// TestRunner is a *testing.M, or what is done around one.
type TestRunner interface{ Run() int }

// Around returns what runs the tests with the servers. Its exit code is not 0 either when a server did not start or end, or
// when After finds something.
func (s *Servers) Around(m TestRunner, options ServersOptions) TestRunner {
	return &serversRun{servers: s, tests: m, options: options}
}

type serversRun struct {
	servers *Servers
	tests   TestRunner
	options ServersOptions
}

// Run implements TestRunner.
func (r *serversRun) Run() (code int) {
	err := r.servers.start(r.options)
	if err == nil {
		code = r.tests.Run()
		if r.options.After != nil {
			err = r.options.After()
		}
	}
	if err := errors.Join(err, r.servers.close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start builds the program while the servers start, and says what they are: make matrix reads it.
func (s *Servers) start(options ServersOptions) error {
	ctx, cancel := context.WithTimeout(context.Background(), serversStart)
	defer cancel()
	var builder sync.WaitGroup
	var binaryErr, brokerErr, redisErr error
	builder.Go(func() { s.Binary, binaryErr = Build(ctx, options.Race) })
	s.Redis, redisErr = StartRedis(ctx, options.Redis)
	if options.Nodes > 0 {
		s.Cluster, brokerErr = StartBrokerCluster(ctx, options.Nodes, options.Broker)
	} else {
		s.Broker, brokerErr = StartBroker(ctx, options.Broker)
	}
	builder.Wait()
	err := errors.Join(binaryErr, brokerErr, redisErr)
	if err != nil || s.Broker == nil {
		return err
	}
	text, err := Describe(s.Broker, s.Redis)
	if err == nil {
		fmt.Println("servers: " + text)
	}
	return err
}

func (s *Servers) close() error {
	var err error
	if s.Broker != nil {
		err = s.Broker.Close()
	}
	if s.Cluster != nil {
		err = errors.Join(err, s.Cluster.Close())
	}
	if s.Redis != nil {
		err = errors.Join(err, s.Redis.Close())
	}
	if s.Binary != nil {
		err = errors.Join(err, s.Binary.Remove())
	}
	return err
}
