package services

import (
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

const reloads = 3

// testReload: the server is reloaded, or restarted where it knows no reload, again and again while messages come. A server
// that keeps connections may close one right behind an answer that did not say so; what was sent on it meanwhile is
// unknown, and nobody has done its work.
func testReload(t *testing.T, k kind, h *host) {
	s := newStand(t, h, env{"FORWARD_TIMEOUT": timeLimit.String()})
	s.reloadUnderLoad()
	s.reloaded(k)
}

// testReloadClosing is the same with a connection to each request. Then a graceful reload cuts off nothing.
func testReloadClosing(t *testing.T, k kind, h *host) {
	if !k.graceful {
		return
	}
	s := newStand(t, h, env{"FORWARD_HEADERS": "Connection: close"})
	s.reloadUnderLoad()
	s.settled(nil)
}

func (s *stand) reloadUnderLoad() {
	s.t.Helper()
	first := s.batch("first", 2*workers, nil)
	s.publish(first...)
	s.done(first...)
	for range reloads {
		messages := s.batch("load", 40, amqp.Table{"sleep": int32(40)})
		s.publish(messages...)
		s.done(messages[:5]...) // so others are at work
		s.must(s.host.reload())
	}
	s.publish(s.batch("last", 2*workers, nil)...)
}

// reloaded wants each message to have been done, and again only when that was said. It ends the replica.
func (s *stand) reloaded(k kind) {
	s.t.Helper()
	s.finished(len(s.published))
	s.emptied()
	stories, err := s.host.journal.stories()
	s.must(err)
	cut := 0
	for id, m := range s.published {
		got := stories[id]
		if wasCutOff(got) {
			cut++
			s.t.Logf("cut off: %s: %s", id, got)
		}
		if len(got.works) == 0 || k.graceful && len(got.works) > 1 {
			s.t.Errorf("%s: %s; want one execution, more only where a reload cuts off work", id, got)
		}
		s.repeats(m, got)
	}
	if most := reloads * workers; cut > most {
		s.t.Errorf("%d messages were cut off, want at most %d, those that were under way", cut, most)
	}
	s.t.Logf("%d of %d messages were cut off by %d reloads", cut, len(s.published), reloads)
}

// wasCutOff tells whether a request of a message had no answer. The service may not have read that one.
func wasCutOff(got story) bool {
	return len(got.requests) > 1 || len(got.requests) == 1 && got.requests[0].Unknown
}

// repeats wants all requests but those of the first attempt to say that the work may be done, and no attempt to have been
// used but by requests that were cut off, of which a message meets one a reload at most.
func (s *stand) repeats(m message, got story) {
	s.t.Helper()
	last := 0
	for _, request := range got.requests {
		s.whole(m, request)
		attempt, err := strconv.Atoi(request.Attempt)
		if err != nil || attempt <= last || attempt > 1+reloads || request.Unknown != (attempt > 1) {
			s.t.Errorf("%s: %s", m.id, got)
		}
		last = attempt
	}
}
