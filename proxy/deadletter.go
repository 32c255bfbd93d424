package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rabbitonce/dedup"
	"rabbitonce/forward"
)

// obituary is why a message is dead, as its dead letter tells.
type obituary struct {
	reason   dedup.Reason
	deadID   string // "" when no record is dead: missing ID, conflict
	attempts int
	status   int       // of the last answer; 0 when there was none
	problem  string    // of the last attempt
	response []byte    // beginning of the last answer
	first    time.Time // when the ID was first claimed; zero when it was not
	keep     bool      // an outcome was unknown: the record stays after the letter
}

// obituaryOf is what a dead record still knows, for a letter that is published again.
func obituaryOf(rec dedup.Record) obituary {
	return obituary{reason: rec.Reason, deadID: rec.DeadID, attempts: rec.Attempts, first: rec.FirstClaimed, keep: rec.EverUnknown}
}

// bury writes `dead` before the letter is published, so that no copy is POSTed meanwhile and whoever finds the record
// publishes the letter again. res is the POST that led here; nil when there was none.
func (q *queue) bury(work, hold context.Context, m *message, claim dedup.Claim, reason dedup.Reason, res *forward.Result) turn {
	o := obituary{reason: reason, attempts: claim.Record.Attempts, first: claim.Record.FirstClaimed, keep: claim.Record.EverUnknown}
	unknown := false
	if res == nil || res.Outcome == forward.Reject && res.Status == 0 {
		o.attempts-- // this one did not begin
	}
	if res != nil {
		o.status, o.response, o.problem = res.Status, res.Excerpt, errText(res.Err)
		unknown = res.Outcome == forward.Unknown
		o.keep = o.keep || unknown
	}
	o.deadID = dedup.NewDeadID()
	result, err := q.record(work, func(ctx context.Context) (dedup.Settlement, error) {
		return q.store.Bury(ctx, claim.Lease, reason, o.deadID, unknown)
	})
	if t, stop := q.notApplied(result, err); stop {
		return t
	}
	return q.publishLetter(hold, m, o)
}

// publishLetter puts the dead letter into its queue, trying until the broker has confirmed it or the delivery has to
// go back; then whoever gets it next finds the record dead and publishes the letter. With DEADLETTER_MODE=reject
// nothing is published: the settlement is all.
func (q *queue) publishLetter(hold context.Context, m *message, o obituary) turn {
	end := ending{fate: fateDead}
	if !o.keep {
		end.clear = o.deadID
	}
	if q.cfg.DeadLetterMode == DeadLetterByReject {
		end.reject = &o
		return over(end)
	}
	q.held(1)
	defer q.held(-1)
	pauses := backoff{first: 200 * time.Millisecond, last: 10 * time.Second}
	for {
		sent, leftOut := q.compose(m, o)
		err := q.publishOut(hold, deadLetters(q.cfg.DeadLetterQueue), sent)
		if err == nil {
			q.noteLeftOut(m, leftOut)
			break
		}
		if hold.Err() != nil {
			return over(ending{fate: fateReturned})
		}
		q.letters.down(fmt.Errorf("dead letter of message %q: %w", m.logID(), err))
		if sleep(hold, pauses.pause()) != nil {
			return over(ending{fate: fateReturned})
		}
	}
	q.letters.up()
	q.noteDead(m, o)
	return over(end)
}

// lastWord is how long a letter that is under way at the end of its session may take for its confirm: one that is given
// up is published again by whoever gets the message next.
const lastWord = 2 * time.Second

// publishOut publishes, and waits for the confirm a little longer when hold ends meanwhile, unless the session is lost.
func (q *queue) publishOut(hold context.Context, to destination, sent letter) error {
	if hold.Err() != nil {
		return context.Cause(hold)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(hold))
	defer cancel(nil)
	stop := context.AfterFunc(hold, func() {
		cause := context.Cause(hold)
		if errors.Is(cause, errSessionEnded) {
			cancel(cause)
			return
		}
		time.AfterFunc(lastWord, func() { cancel(cause) })
	})
	defer stop()
	return q.publisher.publish(ctx, to, sent)
}

// noteDead counts a dead letter that the broker has.
func (q *queue) noteDead(m *message, o obituary) {
	q.metrics.deadLetters[o.reason].Inc()
	q.log.Warn("dead letter", "id", m.logID(), "reason", o.reason.String(), "attempts", o.attempts, "status", o.status,
		"error", o.problem, "dead_letter_queue", q.cfg.DeadLetterQueue)
}

// clearPause is how long after its settlement the record of a dead letter is deleted: the broker may be told and a quorum
// queue not have it yet (see burst), and if the channel is lost then, the message comes again and must find itself dead.
const clearPause = time.Second

// clearDead deletes the record of a message that is now in the dead letters and whose outcome was never unknown, so
// that any tool can put it back to work. Until then it is kept, also when the session that settled the message is lost.
func (q *queue) clearDead(m *message, deadID string) {
	session, key, id := m.session, m.key, m.logID() // not the message: its body may be large
	q.handlers.Go(func() {
		pause := time.NewTimer(clearPause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-session.ended:
			if session.lost != nil {
				return
			}
			<-pause.C
		}
		if err := q.store.Undead(q.patience.context(), key, deadID); err != nil {
			q.log.Warn("the record of a dead letter could not be deleted: until it expires, a message with this ID and without the header x-rabbitonce-dead-id is dead-lettered again",
				"id", id, "error", err.Error())
		}
	})
}

// compose makes the message as it goes to the dead letters: as it was, and why it is dead.
func (q *queue) compose(m *message, o obituary) (sent letter, leftOut []string) {
	sent = republish(m.delivery, headerPrefix)
	set := func(name string, value any) { sent.Headers[headerPrefix+name] = value }
	set("reason", o.reason.String())
	set("attempts", int64(o.attempts))
	set("queue", q.cfg.Name)
	first := o.first
	if first.IsZero() {
		first = m.seen
	}
	set("first-seen", stamp(first))
	set("dead-at", stamp(time.Now()))
	for name, value := range map[string]string{
		"dead-id": o.deadID, "error": shorten(o.problem), "response": strings.ToValidUTF8(string(o.response), "?"), "left-out": "",
	} {
		setOrClear(sent.Headers, headerPrefix+name, value)
	}
	delete(sent.Headers, headerPrefix+"status")
	if o.status != 0 {
		set("status", int64(o.status))
	}
	return sent, fitHeaders(sent.Headers, q.publisher.headerRoom())
}

// stamp is a time as headers have it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (q *queue) noteLeftOut(m *message, names []string) {
	if len(names) > 0 {
		q.log.Warn("headers of the message did not fit into its dead letter and were left out, the largest first", "id", m.logID(), "left_out", len(names))
	}
}

func shorten(s string) string { return shortenTo(s, 512) }

func shortenTo(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
