package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"strings"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// redriven is a redrive that has ended.
type redriven struct {
	code       int
	out, notes string
}

// redriveEnv is the environment of the sidecar, which the command shares.
func (s *stand) redriveEnv(settings ...env) env {
	all := env{
		"RABBITMQ_URL": s.broker.URL, "REDIS_URL": s.redis.URL, "QUEUES": s.queue, "FORWARD_URL": s.service.URL + "/work", "DEDUP_PREFIX": s.queue,
	}
	for _, more := range settings {
		maps.Copy(all, more)
	}
	return all
}

// redriveWith runs the command to its end.
func (s *stand) redriveWith(settings env, args ...string) redriven {
	s.t.Helper()
	c := exec.CommandContext(s.ctx, shared.Binary.Path, append([]string{"redrive"}, args...)...)
	c.Env = []string{}
	for name, value := range s.redriveEnv(settings) {
		c.Env = append(c.Env, name+"="+value)
	}
	var out, notes bytes.Buffer
	c.Stdout, c.Stderr = &out, &notes
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	got := redriven{code: c.ProcessState.ExitCode(), out: out.String(), notes: notes.String()}
	s.t.Logf("redrive %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.notes)
	if strings.Contains(got.notes, "DATA RACE") || strings.Contains(got.notes, "panic:") {
		s.t.Error("the command has a fault")
	}
	return got
}

// redrive runs the command for the stand's queue and wants exit code 0.
func (s *stand) redrive(flags ...string) redriven {
	s.t.Helper()
	got := s.redriveWith(nil, append([]string{s.queue}, flags...)...)
	if got.code != 0 {
		s.t.Errorf("exit code %d", got.code)
	}
	return got
}

// parse reads what a redrive with --json printed: the IDs of its letters, and the summary.
func (s *stand) parse(r redriven) (ids []string, last summary) {
	s.t.Helper()
	for line := range strings.Lines(r.out) {
		var l struct {
			Letter  *struct{ ID string }
			Summary *summary
		}
		s.must(json.Unmarshal([]byte(line), &l))
		if l.Letter != nil {
			ids = append(ids, l.Letter.ID)
		}
		if l.Summary != nil {
			last = *l.Summary
		}
	}
	return ids, last
}

// putBack wants that a redrive put back n letters.
func (s *stand) putBack(n int, flags ...string) summary {
	s.t.Helper()
	_, last := s.parse(s.redrive(append(flags, "--json")...))
	if last.PutBack != n {
		s.t.Errorf("%d letters put back, want %d", last.PutBack, n)
	}
	return last
}

// startRedrive starts the command and does not wait for it.
func (s *stand) startRedrive(settings env, flags ...string) *replica {
	s.t.Helper()
	process, err := testkit.StartReplica(shared.Binary.Path, s.redriveEnv(settings), append([]string{"redrive", s.queue}, flags...)...)
	s.must(err)
	r := &replica{Replica: process, stand: s}
	s.replicas = append(s.replicas, r)
	return r
}

// exits waits for the end of a command.
func (r *replica) exits(code int) {
	r.stand.t.Helper()
	got, err := r.Wait(r.stand.ctx)
	r.stand.must(err)
	if got != code {
		r.stand.t.Errorf("exit code %d, want %d:\n%s", got, code, r.Logs.Text())
	}
}

// waitLine waits for a line of output with these words.
func (r *replica) waitLine(words string) {
	r.stand.t.Helper()
	_, err := r.Logs.Wait(r.stand.ctx, func(l testkit.LogLine) bool { return strings.Contains(l.Text, words) })
	r.stand.must(err)
}

// dead is a letter as the sidecar writes it.
func deadLetter(queue, id string, headers amqp.Table) amqp.Publishing {
	m := message(id)
	m.Headers = amqp.Table{
		"x-rabbitonce-queue": queue, "x-rabbitonce-reason": "rejected", "x-rabbitonce-attempts": int64(1), "x-rabbitonce-exchange": "",
		"x-rabbitonce-routing-key": queue, "x-rabbitonce-dead-id": "00112233" + id, "x-rabbitonce-dead-at": "2026-01-02T03:04:05Z",
	}
	maps.Copy(m.Headers, headers)
	return m
}

// publishLetters puts letters of the stand's queue into its dead letters.
func (s *stand) publishLetters(ids ...string) {
	s.t.Helper()
	var letters []amqp.Publishing
	for _, id := range ids {
		letters = append(letters, deadLetter(s.queue, id, nil))
	}
	s.must(s.client.PublishTo(s.ctx, s.dead, letters...))
}

// lettersAre wants these letters in the dead letters, in this order.
func (s *stand) lettersAre(ids ...string) {
	s.t.Helper()
	s.contains(s.dead, ids...)
}

// contains wants these messages in a queue, in this order, and takes them.
func (s *stand) contains(queue string, ids ...string) {
	s.t.Helper()
	taken, err := s.client.Take(s.ctx, queue, len(ids))
	s.must(err)
	more, err := s.client.Drain(queue)
	s.must(err)
	var got []string
	for _, m := range append(taken, more...) {
		got = append(got, m.MessageId)
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		s.t.Errorf("in queue %s (-want +got):\n%s", queue, diff)
	}
}
