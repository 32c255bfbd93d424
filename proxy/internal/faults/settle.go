package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// settling bounds the time from the last fault until every queue is empty, on a busy machine, too.
	settling = 5 * time.Minute
	// quietTimes is how often all must be found at rest, half a second apart. A broker that has just started counts wrong.
	quietTimes = 4
)

// settle returns when nothing is left to do: every process consumes every queue, no message is in a queue but dead letters,
// and no request is at work. After its time it returns what there is all the same: the checker finds what is left.
func (s *stage) settle() (unsettled string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	for quiet := 0; quiet < quietTimes; {
		busy, err := s.busy(ctx)
		switch {
		case ctx.Err() != nil:
			return s.describe()
		case err != nil:
			return "", err
		case busy:
			quiet = 0
		default:
			quiet++
		}
		time.Sleep(500 * time.Millisecond)
	}
	return "", nil
}

// describe is what an operator would look at first.
func (s *stage) describe() (string, error) {
	ctx, cancel := within()
	defer cancel()
	text, err := s.servers.Broker.Ctl(ctx, "list_queues", "name", "messages_ready", "messages_unacknowledged", "consumers", "state")
	if err != nil {
		return "", err
	}
	dlx, err := s.servers.Broker.Ctl(ctx, "eval", "[{amqqueue:get_name(Q), rabbit_quorum_queue:info(Q, [messages, messages_dlx, leader, state])}"+
		" || Q <- rabbit_amqqueue:list(), amqqueue:get_type(Q) =:= rabbit_quorum_queue].")
	if err != nil {
		return "", err
	}
	text += dlx
	for _, r := range s.replicas {
		_, status, err := r.current().Get(ctx, "/status")
		text += fmt.Sprintf("%s: %v %s\n%s\n", r.process(), err, status, r.current().Logs.Tail(10))
	}
	return text, nil
}

func (s *stage) busy(ctx context.Context) (bool, error) {
	if s.service.working("") > 0 {
		return true, nil
	}
	for _, r := range s.replicas {
		if !r.idle(ctx) {
			return true, nil
		}
	}
	out, err := s.servers.Broker.Ctl(ctx, "list_queues", "--no-table-headers", "name", "messages")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(out) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.Atoi(count); (err != nil || n > 0) && !strings.HasSuffix(name, ".dead") {
			return true, nil
		}
	}
	// What is on its way from a wait queue to its source queue is in none of these counts.
	out, err = s.servers.Broker.Ctl(ctx, "eval", "lists:sum([proplists:get_value(messages_dlx, rabbit_quorum_queue:info(Q, [messages_dlx]), 0)"+
		" || Q <- rabbit_amqqueue:list(), amqqueue:get_type(Q) =:= rabbit_quorum_queue]).")
	return strings.TrimSpace(out) != "0", err
}

// idle tells whether a replica's process consumes all queues and has nothing to do.
func (r *replica) idle(ctx context.Context) bool {
	m, err := r.current().Metrics(ctx)
	if err != nil {
		return false
	}
	for _, q := range queueNames {
		of := func(name string) float64 { return m[fmt.Sprintf("rabbitonce_%s{queue=%q}", name, q)] }
		if of("session_up") != 1 || of("posts_in_flight") != 0 || of("waiting") != 0 {
			return false
		}
	}
	return true
}
