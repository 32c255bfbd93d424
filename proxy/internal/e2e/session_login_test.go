package e2e

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

// userinfo is a password as a URL holds it.
func userinfo(password string) string {
	return strings.TrimPrefix(url.UserPassword("", password).String(), ":")
}

// vhostURL is the URL of a vhost for a user, with all that may be encoded.
func vhostURL(broker *testkit.Broker, user, password, vhost string) string {
	return "amqp://" + url.UserPassword(user, password).String() + "@" + broker.Addr + "/" + strings.ReplaceAll(url.QueryEscape(vhost), "+", "%20")
}

// Catches: credentials kept from the start, or used up by the first login: neither a corrected nor a rotated password would be taken without a restart.
func loginCorrected(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	file := filepath.Join(t.TempDir(), "password")
	const wrong, rotated = "Kq wrong#1/", `Kq"rotated?%☃`
	writeFile(t, file, wrong+"\n")
	r := s.start(env{"RABBITMQ_URL": "amqp://" + broker.Addr, "RABBITMQ_USERNAME": rotatedUser, "RABBITMQ_PASSWORD_FILE": file})
	r.without("ACCESS_REFUSED", "Login was refused", "RABBITMQ_PASSWORD")
	writeFile(t, file, sessionPassword+"\n")
	r.waitConsuming()
	s.publish("a")
	s.answered("a")
	s.emptied()
	s.ctl("change_password", rotatedUser, rotated)
	since := time.Now()
	s.ctl("close_all_user_connections", rotatedUser, "password rotated")
	r.lost(since, time.Minute, "CONNECTION_FORCED", "password rotated", "why: connection-closed") // the tool takes its time
	r.without("ACCESS_REFUSED", "Login was refused")
	writeFile(t, file, rotated)
	r.waitConsuming()
	s.publish("a", "b")
	s.answered("b")
	s.emptied()
	r.keepsSecret(wrong, sessionPassword, rotated)
	s.settled()
	s.once("a", "b")
}

// Catches: reconnecting given up after a while, or with pauses that grow without a bound; one refusal told as another.
func vhostCreated(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	const vhost = "late/one"
	at := vhostURL(broker, lateUser, sessionPassword, vhost)
	r := s.start(env{"RABBITMQ_URL": at})
	r.without("vhost", vhost, "not found")
	s.ctl("add_vhost", vhost)
	r.without("access to vhost '"+vhost+"'", "refused for user '"+lateUser+"'")
	s.outage(longestPause) // the pauses have grown to the longest
	s.ctl("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")
	client, err := testkit.Dial(vhostURL(broker, "guest", "guest", vhost))
	s.must(err)
	defer func() { s.closed(client.Close()) }()
	s.must(client.DeclareSource(s.queue, nil))
	s.must(client.PublishTo(s.ctx, s.queue, message("a")))
	s.ctl("set_permissions", "-p", vhost, lateUser, ".*", ".*", ".*")
	since := time.Now()
	s.answered("a")
	if took := time.Since(since); took > longestPause+promptly {
		t.Errorf("consuming %v after the vhost was open", took)
	}
	r.keepsSecret(sessionPassword)
	r.term()
	if ready, _, err := client.Depth(s.queue); err != nil || ready != 0 {
		t.Errorf("%d messages left, %v", ready, err)
	}
	s.once("a")
}

// Catches: a vhost that is cut at a slash, or decoded twice; records of two vhosts that meet.
func oddVhostNames(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	for i, vhost := range oddVhosts() {
		at := vhostURL(broker, "guest", "guest", vhost)
		client, err := testkit.Dial(at)
		s.must(err)
		s.must(client.DeclareSource(s.queue, nil))
		s.must(client.PublishTo(s.ctx, s.queue, message("a"), message("a")))
		r := s.start(env{"RABBITMQ_URL": at}) // the same records for all, told apart by the vhost
		s.begun("a", i+1)
		r.waitMetric(`rabbitonce_duplicates_total{kind="done",queue="{queue}"}`, 1)
		r.term()
		if ready, _, err := client.Depth(s.queue); err != nil || ready != 0 {
			t.Errorf("%d messages left in vhost %q, %v", ready, vhost, err)
		}
		s.must(client.Close())
	}
	if n := len(s.posts("a", len(oddVhosts()))); n != len(oddVhosts()) {
		t.Errorf("%d POSTs for %d vhosts", n, len(oddVhosts()))
	}
}

// Catches: a full quota of connections told as something else, or not waited for.
func tooManyConnections(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, nil)
	s.ctl("set_user_limits", limitedUser, `{"max-connections": 1}`)
	settings := env{"RABBITMQ_URL": vhostURL(broker, limitedUser, sessionPassword, "/")}
	first := s.start(settings)
	first.waitConsuming()
	second := s.start(settings)
	second.without("connection", "limit (1)")
	s.publish("a")
	s.answered("a")
	first.term()
	second.waitConsuming()
	s.publish("a", "b")
	s.answered("b")
	s.emptied()
	second.keepsSecret(sessionPassword)
	s.settled()
	s.once("a", "b")
}

// Catches: credentials used up by the first login, a pause that is too long for the operator who closes connections one time after another, work lost with them.
func closedByAnOperator(t *testing.T, broker *testkit.Broker) {
	s := newStandOn(t, broker, shared.Redis, func(testkit.Received) testkit.Action {
		return testkit.Action{Delay: 300 * time.Millisecond}
	})
	r := s.start(env{"RABBITMQ_URL": "amqp://" + broker.Addr, "RABBITMQ_USERNAME": closedUser, "RABBITMQ_PASSWORD": sessionPassword})
	r.waitConsuming()
	orders := ids("order", 160)
	s.publish(orders...)
	_, err := broker.Ctl(s.ctx, "eval", closings)
	s.must(err)
	r.waitConsuming()
	s.answered(orders...)
	s.emptied()
	closed := r.Logs.Find(func(l testkit.LogLine) bool {
		problem, _ := l.Fields["error"].(string)
		return l.Message() == "waiting" && holdsAll(problem, []string{"CONNECTION_FORCED", "maintenance"})
	})
	if len(closed) < 5 { // one that is closed as soon as it is there was not up for the program yet
		t.Errorf("%d closed connections in the log, of 10", len(closed))
	}
	r.keepsSecret(sessionPassword)
	s.settled()
	s.once(orders...)
}

// closings closes ten times the connection of closedUser that has a consumer, as soon as there is a new one.
const closings = `
Consuming = fun(Last) -> [P || [{connection, P}, {user, U}, {consumer_count, N}] <-
    rabbit_channel:info_all([connection, user, consumer_count]), U =:= <<"` + closedUser + `">>, N > 0, P =/= Last] end,
Wait = fun F(Last) -> case Consuming(Last) of [] -> timer:sleep(50), F(Last); [P | _] -> P end end,
lists:foldl(fun(_, Last) ->
    P = Wait(Last), timer:sleep(200), rabbit_networking:close_connection(P, "maintenance"), P
end, none, lists:seq(1, 10)).`
