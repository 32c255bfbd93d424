package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	look = 10 * time.Millisecond // how often a run looks at its ledger

	// A run is given runPatience, and a second more for each slowest messages.
	runPatience = time.Minute
	slowest     = 300
)

// run is one program between a queue and a service of its own.
type run struct {
	session *session
	program program
	load    load

	queue     string
	ledger    *ledger
	service   *service
	broker    *amqp.Connection
	publisher *publisher
	inspect   *amqp.Channel // asks for the queue's depth

	figures figures
	tenths  []figures
}

// prepare makes the queue, the ledger and the service.
func (s *session) prepare(p program, l load) (*run, error) {
	s.runs++
	r := &run{session: s, program: p, load: l, queue: fmt.Sprintf("%s-%d", s.prefix, s.runs), figures: figures{}}
	id := randomHex(6)
	r.ledger = newLedger(fmt.Sprintf("%s-%s-4000-8000-", id[:8], id[8:]), l.messages)
	if err := r.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare run: %w", err), r.close())
	}
	return r, nil
}

func (r *run) open() error {
	declare := r.session.client.DeclareQuorum
	if r.load.classic {
		declare = r.session.client.DeclareClassic
	}
	if err := declare(r.queue, nil); err != nil {
		return err
	}
	var err error
	if r.service, err = startService(r.ledger, r.load.service); err != nil {
		return err
	}
	if r.broker, err = amqp.Dial(r.session.servers.brokerURL); err != nil {
		return fmt.Errorf("dial broker: %w", err)
	}
	if r.inspect, err = r.broker.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	r.publisher, err = openPublisher(r.broker, r.queue, r.load.size, r.ledger)
	return err
}

// close removes all that belongs to the run but its keys in the store, which the end of the scenario removes.
func (r *run) close() error {
	var err error
	if r.broker != nil {
		err = r.broker.Close()
	}
	if r.service != nil {
		err = errors.Join(err, r.service.close())
	}
	for _, queue := range []string{r.queue, r.deadQueue()} {
		err = errors.Join(err, r.session.client.Delete(queue)) // one that is not there is no error
	}
	return err
}

func (r *run) deadQueue() string { return r.queue + ".dead" }

// drain fills the queue, and measures a program that empties it.
func (r *run) drain(ctx context.Context) error {
	for n := range sequence(r.load.messages, r.load.copies) {
		if err := r.publisher.publish(ctx, n); err != nil {
			return err
		}
	}
	if err := r.publisher.settle(ctx); err != nil {
		return err
	}
	if r.load.tenths {
		r.session.say("  %s messages are published", thousands(float64(r.load.total())))
	}
	f, err := r.launch()
	if err != nil {
		return err
	}
	defer f.close()
	end, err := r.awaitDone(ctx, f)
	if err != nil {
		return err
	}
	if err := r.finish(ctx, f); err != nil {
		return err
	}
	took := end.Sub(r.ledger.firstPost())
	r.figures[speed] = float64(r.load.total()) / took.Seconds()
	r.figures[startTime] = r.ledger.firstPost().Sub(f.began).Seconds()
	if r.load.service > 0 {
		most := float64(r.load.concurrency) / r.load.service.Seconds()
		r.figures[limitShare] = 100 * r.figures[speed] / most
		r.figures[serviceTime] = milliseconds(time.Duration(r.service.held.Load() / r.ledger.posts.Load()))
	}
	r.compareHalves()
	return nil
}

// awaitDone returns when every message was POSTed and the queue is empty. What is not acknowledged yet by then is looked
// at in finish.
func (r *run) awaitDone(ctx context.Context, f *fleet) (time.Time, error) {
	patience := runPatience + time.Duration(r.load.total()/slowest)*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %v", patience))
	defer cancel()
	t := tenths{run: r, fleet: f}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := t.look(); err != nil {
			return time.Time{}, err
		}
		if r.allPosted() {
			ready, _, err := r.depth()
			if err != nil || ready == 0 {
				return time.Now(), err
			}
		}
		select {
		case <-ticker.C:
		case <-f.ended:
			return time.Time{}, f.endedEarly()
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%w: %d of %d messages POSTed\n%s", context.Cause(ctx), r.ledger.distinct.Load(), r.load.messages, f.tail())
		}
	}
}

// allPosted tells whether every POST has come that the program owes: the baseline POSTs copies too.
func (r *run) allPosted() bool {
	if r.program == programBaseline {
		return int(r.ledger.posts.Load()) >= r.load.total()
	}
	return int(r.ledger.distinct.Load()) >= r.load.messages
}

// depth is how many messages are ready in the queue, and how many consumers it has. Unlike what the management interface
// and rabbitmqctl say of a quorum queue, it is not as old as the queue's last tick.
func (r *run) depth() (ready, consumers int, err error) {
	q, err := r.inspect.QueueDeclarePassive(r.queue, true, false, false, false, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("inspect queue: %w", err)
	}
	return q.Messages, q.Consumers, nil
}

// finish waits until the program has fallen quiet, reads what it has used, ends it, and judges the run.
func (r *run) finish(ctx context.Context, f *fleet) error {
	used, err := f.quiet(ctx)
	if err != nil {
		return err
	}
	if r.figures[peak], err = f.memory(peakMemory); err != nil {
		return err
	}
	r.figures[cost] = microseconds(used) / float64(r.load.total())
	if r.program == programRabbitonce {
		r.figures[binarySize] = r.session.binaryMB
	}
	if err := f.stop(ctx); err != nil {
		return err
	}
	left, err := r.left(ctx)
	if err != nil {
		return err
	}
	dead, err := r.session.client.Exists(r.deadQueue())
	if err != nil {
		return err
	}
	return r.judge(left, dead)
}

// left is how many messages are in the queue once the broker has noticed that its consumers are gone, and has put back
// what they had not acknowledged.
func (r *run) left(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runPatience, errors.New("the broker still lists a consumer"))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		ready, consumers, err := r.depth()
		if err != nil || consumers == 0 {
			return ready, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// judge says what went wrong with the messages of a run.
func (r *run) judge(left int, dead bool) error {
	extra := r.ledger.extra()
	if r.program == programBaseline {
		extra -= r.load.total() - r.load.messages
	}
	var problems []error
	problem := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problem(r.ledger.missing() != 0, "%d message(s) lost", r.ledger.missing())
	problem(extra != 0, "%d POST(s) too many", extra)
	problem(r.ledger.strange.Load() != 0, "%d POST(s) with a strange key", r.ledger.strange.Load())
	problem(left != 0, "%d message(s) left in the queue", left)
	problem(dead, "there are dead letters")
	return errors.Join(problems...)
}
