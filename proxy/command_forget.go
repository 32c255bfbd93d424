package proxy

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"rabbitonce/dedup"
)

func forgetCommand() Command {
	return Command{
		Name: "forget", Arguments: "QUEUE ID",
		Short: "delete the record of a message ID, so that the message is processed anew",
		Long: `It opens a dead record, lets a copy of a waiting message go at once, and forgets attempts and that an outcome was unknown. It moves no message.
Refused without a flag: a record under which a request may be at work (--force), and one that says done (--done).
A record that changes while it is looked at is looked at again; what a replica wrote meanwhile is never deleted unseen.
Exit code 0 when the record was deleted, 1 when there is none or it was refused, 2 for a mistake in the command line or the configuration.`,
		setup: func(flags *flag.FlagSet) func(context.Context, *invocation) error {
			var o forgetOptions
			source := flags.String("source", "", sourceUsage)
			asJSON := flags.Bool("json", false, "print JSON")
			flags.BoolVar(&o.force, "force", false, "forget even though a request may be at work: the message can then be executed twice at the same time")
			flags.BoolVar(&o.done, "done", false, "forget a message that is done: a copy is then executed a second time")
			return func(ctx context.Context, c *invocation) error { return forget(ctx, c, *source, *asJSON, o) }
		},
	}
}

type forgetOptions struct{ force, done bool }

// permission is whether a record may be forgotten.
type permission uint8

const (
	mayForget permission = iota
	atWork               // a request may be under way: needs --force
	isDone               // the work is done: needs --done
)

// decideForget says whether what was seen may be forgotten. A request may also be at work after its outcome became
// unknown, until its deadline: a waiting or dead record is not due before.
func decideForget(seen dedup.Sighting, o forgetOptions) permission {
	rec := seen.Record
	early := rec.EverUnknown && seen.Now.Before(rec.NotBefore)
	switch {
	case rec.State == dedup.StateDone && !o.done:
		return isDone
	case (seen.Live() || early) && !o.force:
		return atWork
	}
	return mayForget
}

// forgetTries bounds how often a record is looked at that changes meanwhile.
const forgetTries = 10

func forget(ctx context.Context, c *invocation, source string, asJSON bool, o forgetOptions) error {
	q, err := openQuery(c, source)
	if err != nil {
		return err
	}
	defer func() { _ = q.store.Close() }()
	for range forgetTries {
		was, forgotten, err := q.forgetOnce(ctx, o)
		switch {
		case err != nil && asJSON:
			return errors.Join(err, printJSON(c.out, map[string]any{"forgotten": false, "problem": err.Error()}))
		case err != nil:
			return err
		case !forgotten:
			continue
		case asJSON:
			return printJSON(c.out, map[string]any{"forgotten": true, "was": was})
		}
		_, err = fmt.Fprintf(c.out, "forgotten. %s\n\nIt was:\n%s", afterForget(q.queue, was), was.text(q.queue))
		return err
	}
	return errors.New("the record changes faster than it can be looked at; nothing was deleted: try again")
}

// forgetOnce looks, decides and deletes. forgotten is false when the record changed in between.
func (q *recordQuery) forgetOnce(ctx context.Context, o forgetOptions) (was story, forgotten bool, err error) {
	all, err := q.look(ctx)
	if err != nil {
		return story{}, false, err
	}
	found := taken(all)
	switch len(found) {
	case 0:
		return story{}, false, fmt.Errorf("nothing is recorded of message ID %s in queue %s, so there is nothing to forget. Looked for as\n%s%s",
			printable(q.id), q.queue.Name, placesText(all), nothingRecorded(q.queue))
	case 1:
	default:
		return story{}, false, errUsage{fmt.Sprintf("message ID %s has more than one record; say which with --source:\n%s", printable(q.id), placesText(found))}
	}
	was = tell(q.queue, q.id, found[0])
	if err := refuseForget(q.queue, was, found[0], o); err != nil {
		return was, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	forgotten, err = q.store.Forget(ctx, found[0].sighting)
	return was, forgotten, err
}

// refuseForget is why a record is not deleted; nil when it may be.
func refuseForget(q QueueConfig, was story, p recordPlace, o forgetOptions) error {
	if p.foreign != nil {
		return fmt.Errorf("nothing was deleted: %s", was.Where)
	}
	switch decideForget(p.sighting, o) {
	case isDone:
		return fmt.Errorf("refused: the message is done, and nothing but this record keeps a copy of it from being executed a second time. If that is wanted, add --done\n\n%s", was.text(q))
	case atWork:
		return fmt.Errorf("refused: a request for this message may be at work in the service, and a copy would run beside it. Wait until it is over, or add --force\n\n%s", was.text(q))
	}
	return nil
}

// afterForget says what follows from a deletion.
func afterForget(q QueueConfig, was story) string {
	text := ""
	switch was.State {
	case dedup.StateProcessing.String():
		text = fmt.Sprintf("The message is claimed anew when it is delivered again. A replica that holds it finds out within %s and cuts its request off; the service may finish it all the same, and if it does in time, that success is recorded.",
			shortDuration(q.Dedup.Lease/3))
	case dedup.StateWaiting.String():
		text = "The message is claimed as new when it is delivered again, its attempts start from 1."
	case dedup.StateDone.String():
		text = "The next copy of the message is executed a SECOND TIME."
	case dedup.StateDead.String():
		text = fmt.Sprintf("A copy of the message is processed as new; its letter (%s) stays there until it is put back or deleted.", lettersPlace(q))
	}
	if was.EverUnknown {
		text += " That an outcome was unknown is forgotten too: the next request is NOT flagged Delivery-Outcome-Unknown."
	}
	return text
}
