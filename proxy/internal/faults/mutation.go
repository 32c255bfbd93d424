package faults

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// mutation is the program with one of its rules taken out, and the faults that show it soonest. A run that does not notice is
// worth nothing.
type mutation struct {
	name  string
	edits []edit
	kinds []string     // of the faults; all others are left out
	own   []kind       // faults that no other run has
	each  bool         // they are of one replica
	rules []check.Rule // one of these must be broken
}

func mutations() []mutation {
	const service = "service network reset"
	return []mutation{
		{
			name: "ack before record",
			edits: []edit{{
				"proxy/record.go", "\tacked := false\n\tfor {\n",
				"\tacked := true\n\tm.session.settle(m.DeliveryTag, settleAck)\n\tfor {\n",
			}},
			own: []kind{{name: "killed while the store is stalled", part: check.PartStore, fatal: true, hit: killedUnrecorded}}, each: true,
			rules: []check.Rule{check.Unrecorded},
		},
		{
			name: "done on timeout",
			edits: []edit{{
				"forward/post.go", `return Result{Outcome: Unknown, Err: p.failure(ctx, "after the request began to be sent", err)}, false`,
				`return Result{Outcome: Done, Err: p.failure(ctx, "after the request began to be sent", err)}, false`,
			}},
			kinds: []string{service}, rules: []check.Rule{check.Lost},
		},
		{
			name: "release without owner check",
			edits: []edit{{
				"dedup/scripts/protocol.lua", "if token_found ~= ARGV[base + 2] or not found then",
				"if not found or (operation ~= 'release' and token_found ~= ARGV[base + 2]) then",
			}},
			own: []kind{{name: "session lost while the store is stalled past the lease", part: check.PartStore, hit: lateRelease}}, each: true,
			rules: []check.Rule{check.AttemptRepeated, check.AtOnce, check.AfterDone},
		},
		{
			name: "settle on a new session",
			edits: []edit{
				{"proxy/session.go", "\t\"errors\"\n", "\t\"errors\"\n\t\"sync\"\n"},
				{
					"proxy/session.go", "func newSession(c *consumer, prefetch int) *session {\n\treturn &session{",
					"var latest sync.Map\n\nfunc newSession(c *consumer, prefetch int) *session {\n\ts := newSessionOf(c, prefetch)\n\tlatest.Store(c.queue, s)\n\treturn s\n}\n\n" +
						"func newSessionOf(c *consumer, prefetch int) *session {\n\treturn &session{",
				},
				{
					"proxy/session.go", "func (s *session) settle(tag uint64, verb settleVerb) {\n",
					"func (s *session) settle(tag uint64, verb settleVerb) {\n\tif now, ok := latest.Load(s.consumer.queue); ok {\n\t\ts = now.(*session)\n\t}\n",
				},
			},
			kinds: []string{"broker network cut", "broker network reset"}, rules: []check.Rule{check.Lost},
		},
		{
			name: "replay allowed",
			edits: []edit{{
				"forward/post.go", "return result, !began && reused &&", "return result, (!began || result.Outcome == Unknown) && reused &&",
			}},
			kinds: []string{service, "service network replies lost"}, rules: []check.Rule{check.AttemptRepeated},
		},
		{
			name: "retry without confirm",
			edits: []edit{{
				"proxy/link.go", "\tselect {\n\tcase <-confirm.Done():\n\tcase <-giveUp:\n", "\tselect {\n\tdefault:\n\t\treturn nil\n\tcase <-giveUp:\n",
			}},
			own:   []kind{{name: "network cut under a memory alarm", part: check.PartBroker, hit: cutUnderAlarm}},
			rules: []check.Rule{check.Lost},
		},
		{
			name: "unknown repeated before its deadline",
			edits: []edit{
				{
					"dedup/scripts/protocol.lua", "      not_before = math.max(not_before, nearest((struct.unpack('>I5', found, 39))))\n    end\n    return write(struct.pack(HEAD, letter('w')",
					"    end\n    return write(struct.pack(HEAD, letter('w')",
				},
				{"proxy/attempt.go", "pause, nominal = max(pause, deadline), max(nominal, deadline)", "_ = deadline"},
			},
			kinds: []string{service}, rules: []check.Rule{check.TooEarly},
		},
	}
}

// killedUnrecorded kills a process when services have answered it and the store has not heard of that.
func killedUnrecorded(_ *stage, r *replica, draw *rand.Rand) error {
	r.store.Stall()
	time.Sleep(between(draw, timeout/10, timeout/4))
	err := r.kill(0)
	r.store.Reset() // with what was on its way
	r.store.Unstall()
	return err
}

// lateRelease has a process give its claims back while others work under theirs. What it is granted it hears only when it has lost
// its session, so it gives that back; and the store hears of this when the leases are over.
func lateRelease(s *stage, r *replica, draw *rand.Rand) error {
	const granted, noticed, takeover = 300 * time.Millisecond, 100 * time.Millisecond, time.Second
	r.store.Stall(testkit.ToClient)
	time.Sleep(granted)
	r.broker.Cut()
	time.Sleep(noticed)
	r.store.Stall(testkit.ToServer)
	r.store.Unstall(testkit.ToClient)
	time.Sleep(lease - granted - noticed)
	hung := make(chan struct{})
	go func() { // so that those who take over are at work
		defer close(hung)
		s.service.hang(takeover + timeout)
	}()
	time.Sleep(between(draw, takeover, takeover+timeout/2))
	r.store.Unstall()
	<-hung
	return nil
}

// cutUnderAlarm has the broker take what is on its way to wait queues and letters neither in nor, as the connections end, later.
func cutUnderAlarm(s *stage, _ *replica, draw *rand.Rand) error {
	err := s.alarm(between(draw, timeout/2, timeout))
	for _, r := range s.replicas {
		r.broker.Cut()
	}
	return errors.Join(err, s.noAlarm())
}

// lanes are those of a mutation: only its kinds of faults, at a quick pace.
func (m mutation) lanes() []lane {
	const pace = 300 * time.Millisecond
	var few []lane
	if len(m.own) > 0 {
		few = append(few, lane{name: "own", kinds: m.own, each: m.each, pause: pace})
	}
	for _, l := range lanes() {
		l.kinds = slices.DeleteFunc(l.kinds, func(k kind) bool { return !slices.Contains(m.kinds, k.name) })
		if len(l.kinds) > 0 {
			l.pause = pace
			few = append(few, l)
		}
	}
	return few
}

// caught returns the violations of the rules that a mutation has to break.
func (m mutation) caught(r check.Report) []check.Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v check.Violation) bool { return !slices.Contains(m.rules, v.Rule) })
}
