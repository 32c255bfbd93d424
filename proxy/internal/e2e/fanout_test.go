package e2e

import (
	"strings"
	"testing"

	"rabbitonce/proxy/internal/testkit"
)

// fan binds two queues to a fanout exchange and publishes n IDs through it, each twice.
func (s *stand) fan(client *testkit.Client, ids []string, queues ...string) {
	s.t.Helper()
	exchange := s.queue + ".created"
	s.must(client.DeclareExchange(exchange, "fanout"))
	for _, queue := range queues {
		s.must(client.DeclareSource(queue, nil))
		s.must(client.Bind(queue, "", exchange))
	}
	for range 2 {
		for _, id := range ids {
			s.must(client.Publish(s.ctx, testkit.Message{Exchange: exchange, Publishing: message(id)}))
		}
	}
}

// onceAtEach wants each ID to have been POSTed once at each of the paths, as a first attempt.
func (s *stand) onceAtEach(ids []string, paths ...string) {
	s.t.Helper()
	s.must(s.service.Journal.WaitAnswered(s.ctx, len(ids)*len(paths)))
	s.settled()
	posts := map[string]int{}
	for _, e := range s.service.Journal.Entries() {
		posts[e.Key+" at "+e.Path]++
		if e.Attempt != "1" || e.Unknown {
			s.t.Errorf("POST of %s at %s: attempt %s, unknown %t", e.Key, e.Path, e.Attempt, e.Unknown)
		}
	}
	for _, id := range ids {
		for _, path := range paths {
			if n := posts[id+" at "+path]; n != 1 {
				s.t.Errorf("%d POSTs of %s at %s, want 1", n, id, path)
			}
			delete(posts, id+" at "+path)
		}
	}
	for post := range posts {
		s.t.Errorf("POST of %s, which nobody asked for", post)
	}
}

// Catches: two processes that take the copy in another's queue for a duplicate of their own, or both copies of theirs for messages.
func TestFanOutIntoTwoProcesses(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	other := s.queue + ".other"
	orders := ids("order", 20)
	s.start(env{"FORWARD_URL": s.service.URL + "/one"})
	s.start(env{"FORWARD_URL": s.service.URL + "/two", "QUEUES": other})
	s.fan(s.client, orders, s.queue, other)
	s.onceAtEach(orders, "/one", "/two")
	s.hasNothing(s.client, other)
}

// Catches: the vhost left out of a record's identity. Both queues have one name, both processes one Redis and one prefix, and the second vhost's name has a slash in it.
func TestFanOutIntoTwoVhosts(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	vhost := s.queue + "/eu"
	s.ctl("add_vhost", vhost)
	defer s.ctl("delete_vhost", vhost)
	s.ctl("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")
	url := strings.TrimSuffix(s.broker.URL, "/") + "/" + strings.ReplaceAll(vhost, "/", "%2F")
	there, err := testkit.Dial(url)
	s.must(err)
	defer func() { s.closed(there.Close()) }()
	orders := ids("order", 20)
	s.start(env{"FORWARD_URL": s.service.URL + "/one"})
	s.start(env{"FORWARD_URL": s.service.URL + "/two", "RABBITMQ_URL": url})
	s.fan(s.client, orders, s.queue)
	s.fan(there, orders, s.queue)
	s.onceAtEach(orders, "/one", "/two")
	s.hasNothing(there, s.queue)
}

// hasNothing wants a queue without consumers to be empty.
func (s *stand) hasNothing(client *testkit.Client, queue string) {
	s.t.Helper()
	s.eventually("queue has no consumer", func() (bool, error) {
		_, consumers, err := client.Depth(queue)
		return err == nil && consumers == 0, err
	})
	if ready, _, err := client.Depth(queue); err != nil || ready != 0 {
		s.t.Errorf("%d messages came back to %s, %v", ready, queue, err)
	}
}
