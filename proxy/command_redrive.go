package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// redriveGrace is how long the publish under way may take after a signal to stop.
const redriveGrace = 5 * time.Second

// redriveOptions are the command's flags.
type redriveOptions struct {
	from    string
	reasons listFlag
	ids     listFlag
	limit   int
	rate    float64
	dry     bool
	json    bool
}

func redriveCommand() Command {
	return Command{
		Name: "redrive", Arguments: "QUEUE", Short: "put the dead letters of a queue back to work",
		Long: `
Each letter of QUEUE that is in its dead-letter queue now is published to QUEUE, confirmed, and then acknowledged, the
oldest first. Its attempts and RETRY_MAX_AGE start again. Letters that are not asked for, and those of other queues, stay.
It works from the environment of the running program and needs neither that nor the store. It can be interrupted
at any point, also by kill -9: at worst a letter is in both queues, and its record makes one execution of it.
Letters of reason unknown-outcome may have been done: look into the service before, or leave them out with --reason.
Exit code: 0; 1 when it was interrupted, something failed, or an ID of --id was not found; 2 for wrong arguments.`,
		setup: func(flags *flag.FlagSet) func(context.Context, *invocation) error {
			o := &redriveOptions{}
			flags.StringVar(&o.from, "from", "", "take the letters from this `queue`; the default is DEADLETTER_QUEUE")
			flags.Var(&o.reasons, "reason", "only letters of these `reasons`, comma-separated: "+strings.Join(redriveReasons(), ", "))
			flags.Var(&o.ids, "id", "only letters with these message `IDs`, comma-separated (\\, for a comma in an ID); may be given more than once")
			flags.IntVar(&o.limit, "limit", 0, "at most `N` letters; 0 is all")
			flags.Float64Var(&o.rate, "rate", 100, "at most `N` letters a second; 0 is as fast as the broker confirms them, and not in order")
			flags.BoolVar(&o.dry, "dry-run", false, "list what would be put back, and put nothing back")
			flags.BoolVar(&o.json, "json", false, "print JSON, one object a line; the last one is the summary")
			return func(ctx context.Context, c *invocation) error { return redriveQueue(ctx, c, o) }
		},
	}
}

// listFlag is a flag with a comma-separated list; given again it adds to it. A comma within an entry is written \,.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *listFlag) Set(text string) error {
	const escaped = "\x00" // no argument of a program can hold it
	for part := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, escaped), ",") {
		if part == "" {
			return errors.New("an entry of the list is empty")
		}
		*l = append(*l, strings.ReplaceAll(part, escaped, ","))
	}
	return nil
}

func (o *redriveOptions) validate() error {
	for _, reason := range o.reasons {
		if !slices.Contains(redriveReasons(), reason) {
			return errUsage{fmt.Sprintf("--reason: there is no reason %q: %s", reason, strings.Join(redriveReasons(), ", "))}
		}
	}
	if o.limit < 0 {
		return errUsage{fmt.Sprintf("--limit: %d is less than 0", o.limit)}
	}
	if o.rate < 0 || math.IsNaN(o.rate) || math.IsInf(o.rate, 0) || o.rate > 0 && o.rate < slowestRate {
		return errUsage{fmt.Sprintf("--rate: %v is out of range: at least %v letters a second, or 0", o.rate, slowestRate)}
	}
	return nil
}

// slowestRate is one letter in five minutes: the broker closes a channel whose letter waits for longer than half an hour.
const slowestRate = 1.0 / 300

func redriveQueue(ctx context.Context, c *invocation, o *redriveOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg, err := Load(c.environ, c.version)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(cfg.Queues, func(q QueueConfig) bool { return q.Name == c.args[0] })
	if at < 0 {
		return errUsage{fmt.Sprintf("%q is not one of QUEUES (%s)", c.args[0], strings.Join(cfg.QueueNames, ", "))}
	}
	q := cfg.Queues[at]
	if o.from != "" {
		q.DeadLetterQueue = o.from
	}
	switch q.DeadLetterQueue {
	case "":
		return errUsage{"with DEADLETTER_MODE=reject only the broker knows where dead letters go: name that queue with --from"}
	case q.Name:
		return errUsage{fmt.Sprintf("--from: %q is the queue to put letters back to", q.Name)}
	}
	ctx, hard, end := interruptible(ctx)
	defer end()
	out := &redriveOutput{out: c.out, notes: c.notes, json: o.json, began: time.Now()}
	r := &redrive{
		selection: selection{queue: q.Name, reasons: o.reasons, ids: o.ids},
		deadQueue: q.DeadLetterQueue, identify: identifier(q.Dedup), retention: q.Dedup.Retention,
		limit: o.limit, rate: o.rate, dry: o.dry, list: out.letter, progress: out.progress,
		report: newRedriveReport(q.Name, q.DeadLetterQueue, o.dry),
	}
	err = r.connectAndRun(ctx, hard, cfg, out)
	if err == nil && (o.limit == 0 || r.started < o.limit) { // it has looked everywhere
		r.report.IDsNotFound = r.report.missing(o.ids)
	}
	if len(r.report.IDsNotFound) > 0 {
		err = fmt.Errorf("%d of the IDs were not found in %s", len(r.report.IDsNotFound), q.DeadLetterQueue)
	}
	if err != nil {
		r.report.Error = err.Error()
	}
	return errors.Join(err, out.summary(&r.report))
}

// interruptible returns a context that SIGINT and SIGTERM end, and one that ends redriveGrace later. A second signal has
// its usual effect.
func interruptible(parent context.Context) (soft, hard context.Context, end func()) {
	soft, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	hard, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	watched := make(chan struct{})
	unwatch := context.AfterFunc(soft, func() {
		defer close(watched)
		stop()
		select {
		case <-time.After(redriveGrace):
			cancel(errInterrupted)
		case <-hard.Done():
		}
	})
	return soft, hard, func() {
		cancel(nil)
		if !unwatch() {
			<-watched
		}
		stop()
	}
}

// connectAndRun runs r on connections of its own.
func (r *redrive) connectAndRun(ctx, hard context.Context, cfg *Config, out *redriveOutput) error {
	b := newBroker(cfg)
	shelf, ready, err := b.openShelf(ctx, r.deadQueue)
	if err != nil {
		return missingQueue(err, r.deadQueue, "it is declared with the first dead letter; if letters go elsewhere, set DEADLETTER_QUEUE")
	}
	// A broker that does not answer must not keep an interrupted command from ending.
	stop := context.AfterFunc(hard, shelf.cut)
	// A quorum queue without a leader says 0, but fails to hand one out.
	r.total, r.report.Letters, r.shelf = max(ready, 1), ready, shelf
	p := newPublisher(b)
	p.alarm = out.alarm
	r.press = p
	if err = missingQueue(checkQueue(shelf.conn, r.queue, accessWrite), r.queue, "create it first, nothing was put back"); err == nil {
		err = missingQueue(r.run(ctx, hard), r.queue, "it was deleted meanwhile; the letters that are left stay where they are")
	}
	closed := shelf.close(hard, r.unacked)
	stop()
	p.closeNow()
	switch {
	case err == nil && closed != nil:
		return fmt.Errorf("the last acknowledgements may not have reached the broker, and their letters are in both queues then; run it again: %w", closed)
	case err != nil && !errors.Is(err, errInterrupted):
		return fmt.Errorf("stopped, nothing is lost, and it can be run again: %w", err)
	}
	return err
}

// missingQueue replaces the broker's words for a queue that does not exist: what it has to say to a program that waits
// for the queue does not fit here.
func missingQueue(err error, queue, remedy string) error {
	var e *closing
	if errors.As(err, &e) && e.Code == notFound {
		return fmt.Errorf("the queue %s does not exist: %s", queue, remedy)
	}
	return err
}

// redriveOutput is what a redrive prints: letters and the summary on out, progress and trouble on notes.
type redriveOutput struct {
	out   io.Writer
	notes io.Writer
	json  bool
	began time.Time

	mu     sync.Mutex // alarms come from a goroutine of the publisher's
	headed bool
}

func (o *redriveOutput) letter(l deadLetter) {
	line := lineOf(l)
	if o.json {
		_ = json.NewEncoder(o.out).Encode(struct {
			Letter letterLine `json:"letter"`
		}{line})
		return
	}
	if !o.headed {
		o.headed = true
		_, _ = fmt.Fprintln(o.out, letterColumns)
	}
	_, _ = fmt.Fprintln(o.out, line)
}

func (o *redriveOutput) progress(r redriveReport) {
	rate := float64(r.PutBack) / time.Since(o.began).Seconds()
	o.note("%s: %d of %d looked at, %d put back, %d left, %.0f a second", r.Queue, r.LookedAt, r.Letters, r.PutBack, r.Letters-r.LookedAt, rate)
}

// alarm says that the broker blocks publishers, and that it no longer does.
func (o *redriveOutput) alarm(err error) {
	if err != nil {
		o.note("waiting: %v", err)
	} else {
		o.note("the broker takes publishes again")
	}
}

func (o *redriveOutput) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = fmt.Fprintf(o.notes, format+"\n", args...)
}

func (o *redriveOutput) summary(r *redriveReport) error {
	if o.json {
		return json.NewEncoder(o.out).Encode(struct {
			Summary *redriveReport `json:"summary"`
		}{r})
	}
	r.write(o.out)
	return nil
}
