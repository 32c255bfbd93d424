package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/dedup"
	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// stage is all that a run needs: the servers, the processes and what stands between them.
type stage struct {
	servers  *testkit.Servers
	service  *service
	wire     *wire
	log      *storeLog
	replicas []*replica
	rest     map[string]vitals // of each process that was measured, when it first was at rest
	parked   float64           // messages that the last replica has moved to wait queues
	dir      string            // of the clocks
	logf     func(format string, args ...any)
}

// programs are what the processes run. Only the clock of the first one can jump, if that has a program.
type programs struct {
	binary, jumping string
	settings        map[string]string // beside those of environment
}

// storeArgs keep the store's log in one file.
var storeArgs = []string{"--auto-aof-rewrite-percentage", "0"}

// brokerArgs have a wait queue try again soon when the queue it leads to was not there, as after a restart. By default that
// takes three minutes.
var brokerArgs = []string{"-rabbit", "dead_letter_worker_publisher_confirm_timeout", "5000"}

// newStage starts n processes.
func newStage(servers *testkit.Servers, run programs, n int, logf func(string, ...any)) (*stage, error) {
	s := &stage{
		servers: servers, logf: logf, wire: &wire{}, rest: map[string]vitals{},
		log: newStoreLog(servers.Redis),
	}
	if err := s.open(run, n); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) open(run programs, n int) error {
	if err := s.declare(); err != nil {
		return err
	}
	var err error
	if s.service, err = startService(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "rabbitonce-faults-"); err != nil {
		return err
	}
	for i := range n {
		r, err := s.newReplica(fmt.Sprintf("r%d", i+1), run)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, r)
		if i == 0 && run.jumping != "" {
			r.binary, r.clock = run.jumping, filepath.Join(s.dir, "clock")
			if err := r.setClock(0); err != nil {
				return err
			}
		}
		if err := r.start(); err != nil {
			return err
		}
	}
	return nil
}

// declare makes all queues anew. The wait queues are as the program would declare them: one that it declares just before the
// broker is killed can be without a leader for ever, see docs/decisions/0017-new-queues-settle.md.
func (s *stage) declare() error {
	client, err := testkit.Dial(s.servers.Broker.URL)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for _, q := range queueNames {
		for _, name := range allQueues(q) {
			if err := client.Delete(name); err != nil {
				return err
			}
		}
		err := errors.Join(client.DeclareSource(q, nil), client.DeclareQuorum(deadLetters(q), nil))
		for _, step := range waitSteps {
			err = errors.Join(err, client.DeclareQuorum(waitQueue(q, step), amqp.Table{
				"x-message-ttl": step.Milliseconds(), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": q,
				"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
			}))
		}
		if err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second)
	return nil
}

func deadLetters(queue string) string { return queue + ".dead" }

// waitSteps are those of the wait queues: of RETRY_HOLD, of the ladder, and of what a broker has returned too often.
var waitSteps = []time.Duration{hold, 2 * time.Second, 30 * time.Second}

func waitQueue(queue string, step time.Duration) string {
	return fmt.Sprintf("%s.wait.%v", queue, step)
}

func allQueues(queue string) []string {
	all := []string{queue, deadLetters(queue)}
	for _, step := range waitSteps {
		all = append(all, waitQueue(queue, step))
	}
	return all
}

func (s *stage) newReplica(name string, run programs) (*replica, error) {
	r := &replica{name: name, binary: run.binary, settings: run.settings}
	var brokerErr, storeErr, serviceErr error
	r.broker, brokerErr = testkit.NewFaultProxy(s.servers.Broker.Addr, testkit.AMQP)
	r.store, storeErr = testkit.NewFaultProxy(s.servers.Redis.Addr, testkit.RESP)
	r.service, serviceErr = testkit.NewFaultProxy(s.service.Addr, testkit.Raw)
	if err := errors.Join(brokerErr, storeErr, serviceErr); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.brokerURL, r.storeURL = s.servers.Broker.URLVia(r.broker.Addr), s.servers.Redis.URLVia(r.store.Addr)
	s.wire.watch(r.service)
	return r, nil
}

func (s *stage) close() error {
	var err error
	for _, r := range s.replicas {
		err = errors.Join(err, r.close())
	}
	if s.service != nil {
		err = errors.Join(err, s.service.Close())
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// collect reads the letters, and what was left in other queues.
func (s *stage) collect() (letters []check.Letter, left []check.Left, err error) {
	client, err := testkit.Dial(s.servers.Broker.URL)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = client.Close() }()
	for _, q := range queueNames {
		for _, name := range allQueues(q) {
			messages, err := client.Drain(name)
			if err != nil {
				return nil, nil, err
			}
			for _, m := range messages {
				id := check.ID{Queue: q, Value: m.MessageId}
				if name == deadLetters(q) {
					letters = append(letters, letterOf(id, m))
				} else {
					left = append(left, check.Left{ID: id, In: name})
				}
			}
		}
	}
	return letters, left, nil
}

// keys are the records' names in the store, which only the program itself knows how to write.
func keys(publications []check.Publication) map[string]check.ID {
	ids := map[string]check.ID{}
	for _, p := range publications {
		ids[dedup.Key("rabbitonce", "//"+p.ID.Queue, dedup.ID{Value: p.ID.Value})] = p.ID
	}
	return ids
}

// processes returns those of all replicas since the last time.
func (s *stage) processes() ([]check.Process, error) {
	var all []check.Process
	var errs []error
	for _, r := range s.replicas {
		lives, err := r.take()
		all, errs = append(all, lives...), append(errs, err)
	}
	return slices.Clip(all), errors.Join(errs...)
}
