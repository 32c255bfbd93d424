package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"rabbitonce/proxy/internal/testkit"
)

// Catches: an interruption that loses a letter, leaves one unacknowledged, or is not told.
func TestRedriveInterrupted(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 100)
	s.publishLetters(all...)
	s.must(s.client.PublishTo(s.ctx, s.dead, deadLetter("another", "x", nil)))
	command := s.startRedrive(nil, "--rate", "20")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready >= 3, err
	})
	s.must(command.Term())
	command.exits(1)
	command.waitLine("interrupted: nothing is lost")
	command.waitLine("looked at: ")
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if len(messages) < 3 || len(messages) > 99 {
		t.Errorf("%d put back", len(messages))
	}
	s.lettersAre(append(all[len(messages):], "x")...)
}

// Catches: a source queue that is declared, as something else than it was, when it is deleted meanwhile.
func TestRedriveIntoADeletedQueue(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	all := ids("a", 100)
	s.publishLetters(all...)
	command := s.startRedrive(nil, "--rate", "20")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready >= 3, err
	})
	s.must(s.client.Delete(s.queue))
	command.exits(1)
	command.waitLine("stopped, nothing is lost") // the broker may answer with an internal error first
	if there, err := s.client.Exists(s.queue); there || err != nil {
		t.Errorf("the source queue was declared (%v)", err)
	}
	s.eventually("the letters are back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.dead)
		return ready >= 90, fmt.Errorf("%d letters, %w", ready, err)
	})
}

// Catches: trouble that is not told, or not in words that help; a queue declared by the way; a letter lost in it.
func TestRedriveRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.publishLetters("a")
	for _, tt := range []struct {
		name     string
		args     []string // QUEUE is the stand's
		settings env
		arrange  func() error
		code     int
		words    string
	}{
		{name: "another queue", args: []string{"nobodys"}, code: 2, words: `"nobodys" is not one of QUEUES (`},
		{name: "a reason", args: []string{"QUEUE", "--reason", "tired"}, code: 2, words: `there is no reason "tired": rejected, `},
		{name: "a limit", args: []string{"QUEUE", "--limit", "-1"}, code: 2, words: "--limit"},
		{name: "a rate", args: []string{"QUEUE", "--rate", "-1"}, code: 2, words: "--rate"},
		{name: "no queue", code: 2, words: "takes 1 argument"},
		{name: "settings", args: []string{"QUEUE"}, settings: env{"FORWARD_URL": ""}, code: 2, words: "FORWARD_URL"},
		{name: "no broker", args: []string{"QUEUE"}, settings: env{"RABBITMQ_URL": "amqp://guest:guest@127.0.0.1:1/"}, code: 1, words: "connection refused"},
		{name: "no login", args: []string{"QUEUE"}, settings: env{"RABBITMQ_PASSWORD": "wrong"}, code: 1, words: "check RABBITMQ_URL"},
		{name: "no dead-letter queue", args: []string{"QUEUE"}, settings: env{"DEADLETTER_QUEUE": "{queue}.none"}, code: 1, words: ".none does not exist"},
		{name: "a full queue", args: []string{"QUEUE"}, code: 1, words: "length limit", arrange: func() error {
			return errors.Join(s.client.Delete(s.queue),
				s.client.DeclareClassic(s.queue, amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}))
		}},
		{name: "no source queue", args: []string{"QUEUE"}, code: 1, words: "does not exist: create it first", arrange: func() error {
			return s.client.Delete(s.queue)
		}},
	} {
		if tt.arrange != nil {
			s.must(tt.arrange())
		}
		for i, arg := range tt.args {
			tt.args[i] = strings.ReplaceAll(arg, "QUEUE", s.queue)
		}
		got := s.redriveWith(tt.settings, tt.args...)
		if got.code != tt.code || !strings.Contains(got.notes, tt.words) {
			t.Errorf("%s: exit code %d, want %d and %q", tt.name, got.code, tt.code, tt.words)
		}
	}
	if there, err := s.client.Exists(s.queue); there || err != nil {
		t.Errorf("the source queue was declared (%v)", err)
	}
	s.lettersAre("a")
}

// Catches: an alarm that is not told, that keeps an interrupted command from ending, or in which a letter is lost.
func redriveInAlarm(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	all := ids("a", 3)
	s.publishLetters(all...)
	s.watermark("0.0000001")
	command := s.startRedrive(nil)
	command.waitLine("waiting: the broker blocks publishers")
	s.must(command.Term())
	command.exits(1)
	command.waitLine("interrupted: nothing is lost")
	waiting := s.startRedrive(nil)
	waiting.waitLine("waiting: the broker blocks publishers")
	s.watermark("0.6")
	waiting.exits(0)
	messages, err := s.client.Drain(s.queue)
	s.must(err)
	if diff := cmp.Diff(all, slices.Compact(sortedIDs(messages))); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	s.noLetters()
}

// Catches: a broker's death that loses a letter, or that the command waits out in silence.
func redriveInOutage(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	// Classic queues: a broker of version 3.10 that was killed may leave a quorum queue without a leader.
	for _, queue := range []string{s.queue, s.dead} {
		s.must(s.client.Delete(queue))
		s.must(s.client.DeclareClassic(queue, nil))
	}
	all := ids("a", 2000)
	s.publishLetters(all...)
	command := s.startRedrive(nil, "--rate", "100")
	s.eventually("some are put back", func() (bool, error) {
		ready, _, err := s.client.Depth(s.queue)
		return ready > 300, err // by now the queues are old enough to survive the kill
	})
	s.must(broker.Kill())
	command.exits(1)
	command.waitLine("stopped, nothing is lost, and it can be run again")
	s.must(broker.Start(s.ctx))
	s.dial()
	found := map[string]bool{}
	s.eventuallyEvery(askDear, "every letter is put back", func() (bool, error) {
		s.redrive("--rate", "0")
		messages, err := s.client.Drain(s.queue)
		for _, m := range messages {
			found[m.MessageId] = true
		}
		return len(found) == len(all), errors.Join(err, fmt.Errorf("%d of them", len(found)))
	})
	s.noLetters()
}

// Catches: a permission that is missing told in other words than the broker's, which name it.
func TestRedriveWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	s.publishLetters("a")
	for name, tt := range map[string]struct{ write, read, words string }{
		"to read the letters":     {write: ".*", read: "^none$", words: ": read ^"},
		"to publish to the queue": {write: "^none$", read: ".*", words: ": write ^"},
	} {
		user := "user-" + strconv.FormatInt(standNumber.Add(1), 10)
		_, err := s.broker.Ctl(s.ctx, "add_user", user, "secret")
		s.must(err)
		_, err = s.broker.Ctl(s.ctx, "set_permissions", user, "^none$", tt.write, tt.read)
		s.must(err)
		got := s.redriveWith(env{"RABBITMQ_USERNAME": user, "RABBITMQ_PASSWORD": "secret"}, s.queue)
		if got.code != 1 || !strings.Contains(got.notes, tt.words) || strings.Contains(got.notes, "secret") {
			t.Errorf("without permission %s: exit code %d", name, got.code)
		}
	}
	s.lettersAre("a")
}
