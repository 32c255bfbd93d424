package proxy

import (
	"context"
	"flag"
	"fmt"
)

const sourceUsage = "look only where this entry of DEDUP_ID_FROM has put the ID: message-id, correlation-id, header:NAME, json:/POINTER, hash"

func inspectCommand() Command {
	return Command{
		Name: "inspect", Arguments: "QUEUE ID",
		Short: "tell what is recorded of a message ID, and where the message may be",
		Long: `It reads the record in the store and changes nothing; it needs the environment of the running process and not the process.
QUEUE is one of QUEUES. ID is looked for in every place that DEDUP_ID_FROM names; an ID that begins with a hyphen goes after "--".
Exit code 0 when there is a record, 1 when there is none or the store does not answer, 2 for a mistake in the command line or the configuration.`,
		setup: func(flags *flag.FlagSet) func(context.Context, *invocation) error {
			source := flags.String("source", "", sourceUsage)
			asJSON := flags.Bool("json", false, "print JSON")
			return func(ctx context.Context, c *invocation) error { return inspect(ctx, c, *source, *asJSON) }
		},
	}
}

func inspect(ctx context.Context, c *invocation, source string, asJSON bool) error {
	q, err := openQuery(c, source)
	if err != nil {
		return err
	}
	defer func() { _ = q.store.Close() }()
	all, err := q.look(ctx)
	if err != nil {
		return err
	}
	found := q.stories(taken(all))
	if asJSON {
		err = printJSON(c.out, map[string]any{"queue": q.queue.Name, "id": q.id, "records": found})
	} else {
		for _, s := range found {
			_, _ = fmt.Fprintln(c.out, s.text(q.queue))
		}
	}
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return fmt.Errorf("nothing is recorded of message ID %s in queue %s. Looked for as\n%s%s",
			printable(q.id), q.queue.Name, placesText(all), nothingRecorded(q.queue))
	}
	return nil
}
